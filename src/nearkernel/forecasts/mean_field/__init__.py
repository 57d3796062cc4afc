"""The rich regime: networks of infinite width that learn features, as clouds of neurons."""
