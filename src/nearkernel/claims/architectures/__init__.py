"""Networks made of layers: convolution, pooling, residual branches, normalization, attention."""
