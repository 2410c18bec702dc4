"""Convoke's service: the engine behind HTTP."""

__version__ = "0.1.0"
