"""Convoke's service: the engine's operations over HTTP."""

__version__ = "0.1.0"
