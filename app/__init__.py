"""Convoke's service: the engine's operations over HTTP."""
