"""How the error falls with examples, features, compute and width."""
