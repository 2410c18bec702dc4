"""Convolutions as plain sums, and their gradients: products of weights with gathered inputs."""
