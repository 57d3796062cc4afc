"""Order 0: networks of infinite width."""
