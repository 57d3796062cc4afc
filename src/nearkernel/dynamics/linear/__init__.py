"""Training to order 0: linear in the parameters, for any kernel."""
