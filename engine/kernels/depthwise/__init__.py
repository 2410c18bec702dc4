"""Depthwise convolutions, and those of groups of a few channels."""
