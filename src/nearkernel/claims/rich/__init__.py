"""Networks that learn features strongly: the mean-field limit, and networks that approach it."""
