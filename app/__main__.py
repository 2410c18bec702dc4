"""``python -m app`` is ``convoke serve``."""

from __future__ import annotations

import sys

from app.cli import main

if __name__ == "__main__":
    sys.exit(main(["serve", *sys.argv[1:]]))
