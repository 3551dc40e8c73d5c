"""One module for each backend."""
