"""The one place that finds the final answer of a response."""
