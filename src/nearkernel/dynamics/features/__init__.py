"""Features learned in one step, or from gradients of a kernel machine."""
