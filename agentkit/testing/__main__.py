"""`python -m agentkit.testing`: the loopback server on a port, answering by the rule of `demo_reply`."""

from __future__ import annotations

import argparse
import contextlib

from agentkit.testing import LoopbackServer
from agentkit.testing.routes import BASES

__all__ = ["main"]


def main(given: list[str] | None = None) -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m agentkit.testing", description=__doc__)
    parser.add_argument("--port", type=int, default=8765, help="0 for any free one")
    server = LoopbackServer(agent=True, port=parser.parse_args(given).port)
    for provider in sorted(BASES):
        print(f"{provider:22}{server.url(provider)}", flush=True)  # noqa: T201 - it is what the command says
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


if __name__ == "__main__":
    main()
