"""Programs in every language: what a language needs (data), how it is built once, and how its runs are started."""
