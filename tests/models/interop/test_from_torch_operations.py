"""Every operation against PyTorch: values, gradients and Hessian-vector products in float64, for another batch size."""

import numpy as np
import pytest

import nearkernel as nk
from nearkernel.models.interop.aten import OPERATIONS
from support.pytorch.operations import CASES
from support.pytorch.reference import compared, torch

pytestmark = pytest.mark.merge


class Applied(torch.nn.Module):
    """A function of inputs that are multiplied by parameters."""

    def __init__(self, function, shapes):
        super().__init__()
        self.function = function
        rng = np.random.default_rng(2)
        self.weights = torch.nn.ParameterList(
            [torch.tensor(rng.uniform(0.5, 1.5, size=(1, *shape)), dtype=torch.float64) for shape in shapes]
        )

    def forward(self, *inputs):
        return self.function(*(x * w for x, w in zip(inputs, self.weights, strict=True)))


def prepared(name):
    case = CASES[name]

    def batch(n, seed):
        return tuple(
            np.random.default_rng((seed, k)).normal(size=(n, *shape)) for k, shape in enumerate(case.shapes)
        )

    return Applied(case.function, case.shapes).eval(), batch(2, 0), batch(3, 1)


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_the_one_of_pytorch(name):
    module, example, x = prepared(name)
    errors = compared(module, example, x, derivatives=CASES[name].derivatives, check=False)
    assert max(errors) < 1e-12, errors


def test_the_cases_use_the_whole_table():
    used = set()
    for name in CASES:
        module, example, _ = prepared(name)
        program = nk.from_torch(module, example, check=False)[0].program
        used |= {step.operation for step in program.steps}
    inner = ("python.", "sym_")
    unused = {name for name in OPERATIONS if not name.startswith(inner)} - used
    assert not unused, f"add cases for {sorted(unused)} to tests/support/pytorch/operations.py"
