"""`nearkernel claims`: runs claims, shows and keeps their results."""
