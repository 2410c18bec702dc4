"""Large JSON, read and written by a process of its own, so that nobody else waits for it."""
