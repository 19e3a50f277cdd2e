"""Serve imitations of all providers' APIs on a local port. The replies follow simple rules, without a model."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence

from agentkit.testing.server import LoopbackServer

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the base URL of each provider, and serves requests until the process is interrupted.

    Args:
        arguments: Command-line arguments. None means `sys.argv[1:]`.
    """
    parser = argparse.ArgumentParser(prog="python -m agentkit.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=8765, help="port to listen on; 0 for any free port")
    server = LoopbackServer(agent=True, port=parser.parse_args(arguments).port)
    for provider in server.providers:
        print(f"{provider:22}{server.url(provider)}", flush=True)  # noqa: T201 - the command prints its output
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
