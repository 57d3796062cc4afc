"""Accuracy settings for the limit of wide networks that learn features."""

from typing import Any

import equinox as eqx

from ..._base.check import one_of, positive, whole


class Clouds(eqx.Module):
    """Settings of `nk.forecast` for mean-field networks.

    A cloud of weighted neurons on scrambled Sobol points represents each layer.

    **Arguments:** `neurons` per layer, a power of 2: by default 16384 for one hidden layer, 4096 for more;
    `scrambles`, independent repetitions, at least 2, from which `error` is estimated; `tol`, the fraction of a field
    that may remain unresolved between two hidden layers: by default 0.01, or 0.05 for activations with kinks; `look`,
    steps between two searches for new directions; `every`, steps between two stored predictions at new inputs;
    `dtype` of the clouds, "float64" or "float32"; `seed`; `watch`, a function `watch(share, left)` called with the
    finished fraction of the work and the remaining seconds.

    Doubling `neurons` doubles time and memory and divides the error by 1.4 to 2; the gain is larger for few inputs of
    low dimension.
    """

    neurons: int | None = eqx.field(static=True, default=None)
    scrambles: int = eqx.field(static=True, default=8)
    tol: float | None = None
    look: int = eqx.field(static=True, default=1)
    every: int = eqx.field(static=True, default=1)
    dtype: str = eqx.field(static=True, default="float64")
    seed: int = eqx.field(static=True, default=0)
    watch: Any = eqx.field(static=True, default=None)

    def __check_init__(self):
        if self.neurons is not None and whole(self.neurons, "neurons", 64).bit_count() != 1:
            raise ValueError(f"`neurons` must be a power of 2, e.g. 4096; got {self.neurons}.")
        whole(self.scrambles, "scrambles", 2)
        if self.tol is not None and positive(self.tol, "tol") >= 0.5:
            raise ValueError(f"`tol` must be below 0.5; got {self.tol}.")
        whole(self.look, "look", 1)
        whole(self.every, "every", 1)
        whole(self.seed, "seed", 0)
        one_of(self.dtype, "dtype", ("float64", "float32"))
        if self.watch is not None and not callable(self.watch):
            raise TypeError(f"`watch` must be a function of (share, left); got {self.watch!r}.")
