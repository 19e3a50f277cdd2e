"""Requests and servers for tests of remote token counters."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from agentkit import Base64Source, DocumentBlock, ImageBlock, URLSource
from tests.providers.calling import RawRequest, RawServer, write_answer

__all__ = ["FAR", "MODEL", "PDF", "PNG", "TOOL", "get_bodies", "refuse_path", "serve"]

PNG = ImageBlock(Base64Source("image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()))
FAR = ImageBlock(URLSource("https://example.com/a.png"))
PDF = DocumentBlock(URLSource("https://example.com/a.pdf"))
TOOL: dict[str, Any] = {
    "name": "search",
    "description": "Finds things.",
    "parameters": {"type": "object", "properties": {"q": {}}},
}
MODEL = "loopback-model"


def serve(answer: Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]]]) -> RawServer:
    """Returns a server whose status and JSON reply are computed from the path and the body of each request."""

    def write(request: RawRequest) -> bytes:
        status, reply = answer(request.path, json.loads(request.body))
        return write_answer(status, json.dumps(reply).encode(), "content-type: application/json")

    return RawServer(write)


def get_bodies(server: RawServer) -> list[dict[str, Any]]:
    """Returns the bodies that a server received."""
    return [json.loads(request.body) for request in server.requests]


def refuse_path(path: str) -> tuple[int, dict[str, Any]]:
    """Returns the status and the reply for a path that the API does not have."""
    return 404, {"error": {"message": f"unexpected path {path}"}}
