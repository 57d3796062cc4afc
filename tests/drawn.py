"""Random networks written out in NumPy, for tests: the same that claims draw."""

from nearkernel.claims._drawn import Drawn as Drawn
