"""Test code in the answer's own language, put behind the answer (MultiPL-E and its like)."""
