"""How large classes of functions are: entropy, widths, and what they say about learning."""
