"""The kernel's mechanisms, one module each; none knows what a jail looks like."""
