"""Fitted models as files that hold data alone: JSON and arrays, with checksums. Private."""
