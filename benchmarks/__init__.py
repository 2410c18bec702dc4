"""Measurements: the kernels and the service, each against its limits and its peers."""
