"""Automatic models of tables: members, metrics, blends, calibration."""
