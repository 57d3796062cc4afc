"""Training algorithms and losses."""
