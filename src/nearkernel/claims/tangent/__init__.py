"""The neural tangent kernel."""
