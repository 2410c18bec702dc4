"""Loads for HTTP services: bodies, connections, a generator, rounds, and what they show."""
