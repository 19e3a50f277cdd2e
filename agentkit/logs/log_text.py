"""`parse_log_text`: parses logs that are passed as JSON text."""

from __future__ import annotations

from typing import Any, cast

from agentkit.errors import MessageError
from agentkit.json_values import parse_json

__all__ = ["parse_log_text"]


def parse_log_text(log: object) -> object:
    """Parses a log that is the JSON text of a list or an object. Returns any other log unchanged."""
    if not isinstance(log, str | bytes | bytearray):
        return log
    try:
        value: Any = parse_json(log)
    except MessageError:
        return log
    return cast("object", value) if isinstance(value, list | dict) else log
