"""Fitted models as data files: JSON and arrays, with checksums. Private."""
