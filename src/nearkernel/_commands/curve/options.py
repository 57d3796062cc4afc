"""What is typed after `nearkernel curve`."""

import dataclasses
from typing import Annotated

from ..declared import option
from ..options import TRAINING, Algorithm, Seed
from ..predict.options import WideOptions


@dataclasses.dataclass(frozen=True)
class Options(WideOptions):
    algorithm: Algorithm = "ridge"
    lr: Annotated[float | None, option("gd: learning rate.", TRAINING, min=0)] = None
    max_rows: Annotated[int, option("Maximum number of rows; the time grows with its cube.", min=8)] = 2000
    check: Annotated[int, option("Number of real fits at each size, on random subsets.", min=0, max=100)] = 0
    seed: Seed = 0
    tune: Annotated[bool, option("Choose the ridge, or the time of flow, by leave-one-out.", TRAINING)] = (
        False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tune and self.algorithm == "gd":
            raise ValueError("--tune chooses a ridge or a time: use --algorithm ridge or flow.")
        if self.tune and not self.tunes:
            raise ValueError("--tune chooses the value of --ridge or --time: give only one of them.")
