"""Functions of one number at a time, and their slopes."""
