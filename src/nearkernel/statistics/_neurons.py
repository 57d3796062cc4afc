"""How many neurons are drawn for `forecast(order=1)` of many points."""

import equinox as eqx

from .._check import one_of, positive, whole


class SampledNeurons(eqx.Module):
    """Choices of `nk.forecast(order=1)`: when to average over neurons that are drawn, and over how many.

    Tensors of four points each are exact, and their number grows as the fourth power of the points. All of them are
    averages over one neuron of each layer, so neurons on scrambled Sobol points take their place: the cost is the
    square of the points for each neuron.

    **Arguments:** `exact`, the most points, training and new ones, for which tensors are made; `tolerance`: neurons are
    added until the standard errors of mean and deviation at each new point are below this share of the deviation at
    infinite width; `most` neurons per layer, where this ends in any case; `scrambles`, independent repetitions from
    which errors are estimated; `seed`; `dtype`, "float32" or "float64".
    """

    exact: int = eqx.field(static=True, default=12)
    tolerance: float = 0.01
    most: int = eqx.field(static=True, default=2**19)
    scrambles: int = eqx.field(static=True, default=16)
    seed: int = eqx.field(static=True, default=0)
    dtype: str = eqx.field(static=True, default="float32")

    def __check_init__(self):
        whole(self.exact, "exact", 0)
        positive(self.tolerance, "tolerance")
        whole(self.most, "most", 1)
        whole(self.scrambles, "scrambles", 2)
        whole(self.seed, "seed", 0)
        one_of(self.dtype, "dtype", ("float32", "float64"))
