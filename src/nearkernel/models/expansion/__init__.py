"""Models as polynomials in their parameters, and their derivatives."""
