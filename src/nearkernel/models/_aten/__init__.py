"""Programs of ATen operations, run in JAX."""

from . import attention as attention
from . import convolution as convolution
from . import creation as creation
from . import elementwise as elementwise
from . import indexing as indexing
from . import linear_algebra as linear_algebra
from . import normalization as normalization
from . import pooling as pooling
from . import recurrent as recurrent
from . import reductions as reductions
from . import resize as resize
from . import shapes as shapes
from ._program import Program as Program
from ._program import Ref as Ref
from ._program import Step as Step
from ._program import dtype_of as dtype_of
from ._program import kinks as kinks
from ._table import OPERATIONS as OPERATIONS
from ._table import known as known
from ._table import operation_names as operation_names
