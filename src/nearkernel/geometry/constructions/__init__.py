"""Networks and codes built by hand to show what a theorem says."""
