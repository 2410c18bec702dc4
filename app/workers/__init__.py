"""Where requests are computed: worker processes over shared memory, or a thread of the server."""
