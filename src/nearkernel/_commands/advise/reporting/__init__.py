"""What `nearkernel advise` prints and draws."""
