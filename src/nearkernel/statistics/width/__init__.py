"""Networks of finite width at initialization, to order 1/width."""
