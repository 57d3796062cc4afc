"""How many neurons are drawn for `forecast(order=1)` of many points."""

import equinox as eqx

from .._check import one_of, positive, whole


class SampledNeurons(eqx.Module):
    """Settings of `nk.forecast(order=1)`: when to average over sampled neurons, and over how many.

    Tensors of four points are exact, but their number grows as the fourth power of the number of points. All of them
    are averages over one neuron of each layer, so they can be estimated with neurons on scrambled Sobol points, at a
    cost of the square of the number of points per neuron.

    **Arguments:** `exact`, the maximum number of points, training and new ones, for exact tensors; `tolerance`:
    neurons are added until the standard errors of mean and standard deviation at each new point are below this
    fraction of the standard deviation at infinite width; `most`, the maximum number of neurons per layer;
    `scrambles`, independent repetitions from which errors are estimated; `seed`; `dtype`, "float32" or "float64".
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
