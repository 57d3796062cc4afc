"""Order 1/width: networks of finite width."""
