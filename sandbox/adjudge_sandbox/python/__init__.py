"""What runs beside a Python program in its jail, and beside test code in its own."""
