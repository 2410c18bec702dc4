"""The image's HEALTHCHECK: status 0 when the service says that it is ready, 1 when it does not.

The image has no curl, and needs none.
"""

from __future__ import annotations

import os
import sys
from http.client import HTTPException
from urllib.request import ProxyHandler, build_opener


def main() -> int:
    port = os.environ.get("CONVOKE_PORT", "8000")
    # Kubernetes has another use for the name, which the service does not heed either.
    if port.startswith(("tcp://", "udp://")):
        port = "8000"
    # A container may be told of a proxy, which is no way to itself.
    direct = build_opener(ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/readyz", timeout=2):
            return 0
    except (OSError, HTTPException) as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
