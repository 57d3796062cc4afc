"""How far first steps move each layer."""
