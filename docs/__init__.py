"""Documents, and the code that writes the parts of them that are made from code and measurements."""
