"""The image's HEALTHCHECK: status 0 when the service says that it is ready, 1 when it does not.

The image has no curl, and needs none.
"""

from __future__ import annotations

import os
import sys
from urllib.error import URLError
from urllib.request import urlopen


def main() -> int:
    port = os.environ.get("CONVOKE_PORT", "8000")
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return 0
    except (URLError, TimeoutError) as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
