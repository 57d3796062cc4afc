"""Figures of results, drawn on the caller's axes: one file per figure."""
