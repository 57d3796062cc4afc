"""How much boundary there is in more than one dimension."""

import numpy as np

import nearkernel as nk

from .. import Claim, Result, Row, at_most, setting, statistical
from .._drawing import ORANGE, Figure


class BoundaryVolume(Claim):
    """The boundary of a neuron has the volume of Kac and Rice in any dimension, and no more of it in deeper layers."""

    source = "graduate course: linear regions, open problems"
    formula = "vol_(d-1) = int E[|grad z| | z = 0] / sqrt(2 pi K) dx per neuron, in a ball of radius R"

    width: int = setting(60, "Neurons in each of two hidden layers.", low=20, high=300, quick=40)
    size: int = setting(400, "Networks for each dimension.", low=50, high=10_000, quick=100)

    def run(self, seed: int) -> Result:
        dims = np.array([1, 2, 3, 5, 8])
        rows: list[Row] = []
        theory, found, error = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
        for d in dims:
            net = nk.MLP(int(d), (self.width, self.width), 1, "relu", weight_var=2.0, bias_var=0.5)
            law = nk.theory.mean_boundary(net, 1.5)
            measured = nk.theory.measure_boundary(net, 1.5, self.size, seed * 100 + int(d))
            for layer in (0, 1):
                name = f"volume of a neuron of layer {layer + 1} in {d} dimensions"
                rows.append(
                    statistical(
                        name, law[layer], measured.mean[layer], measured.sem[layer], 2 / self.width * layer
                    )
                )
            theory.append(law)
            found.append(measured.mean)
            error.append(measured.sem)
        laws, means, errors = np.array(theory), np.array(found), np.array(error)
        rows.append(
            at_most("volume of the second layer over that of the first", 1.1, np.max(laws[:, 1] / laws[:, 0]))
        )
        columns = {f"layer {i + 1}": laws[:, i] for i in (0, 1)}
        columns |= {f"measured {i + 1}": means[:, i] for i in (0, 1)} | {
            f"sem {i + 1}": errors[:, i] for i in (0, 1)
        }
        return Result(tuple(rows), {"dimension": dims.astype(float), **columns})

    figure = Figure("dimension", "volume of a neuron's boundary, R = 1.5", xlabel="inputs d", log="y")
    figure.pair("layer 1", "measured 1", "sem 1", label="layer 1")
    figure.pair("layer 2", "measured 2", "sem 2", label="layer 2", color=ORANGE)
