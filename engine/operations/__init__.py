"""One file per operation. A module here with an `OPERATION` is in the catalogue; nothing else is."""
