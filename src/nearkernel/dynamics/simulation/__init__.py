"""Real training by compiled steps."""
