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
from .program import Program as Program
from .program import Ref as Ref
from .program import Step as Step
from .program import dtype_of as dtype_of
from .program import kinks as kinks
from .table import OPERATIONS as OPERATIONS
from .table import known as known
from .table import operation_names as operation_names
