"""Maxima, sums and means over windows, and the way of their gradients back."""
