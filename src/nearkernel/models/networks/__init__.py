"""Networks made of layers."""
