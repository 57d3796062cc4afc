"""Layers made of layers, and how moments pass through them."""
