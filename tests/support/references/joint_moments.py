"""Joint cumulants of laws on finitely many points."""

import numpy as np


def moments(values, chances):
    """The first four joint cumulants of the columns of `values`."""
    mean = chances @ values
    v = values - mean
    second, third = (
        np.einsum(f"s,{','.join('s' + c for c in k)}->{k}", chances, *[v] * len(k)) for k in ("bc", "bcd")
    )
    fourth = np.einsum("s,sb,sc,sd,se->bcde", chances, v, v, v, v, optimize=True)
    pairs = np.einsum("bc,de->bcde", second, second)
    return mean, second, third, fourth - pairs - pairs.swapaxes(1, 2) - pairs.swapaxes(1, 3)
