"""How good is it, and is the difference real."""
