"""Faults, hostile clients and long runs: what `make chaos`, `make soak` and the tests of faults share."""
