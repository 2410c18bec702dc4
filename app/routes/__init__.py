"""What is served under which address."""
