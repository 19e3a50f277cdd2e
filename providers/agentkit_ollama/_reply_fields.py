"""Readers of the fields that replies of `/api/chat` and of `/api/generate` share (Ollama source: api/types.go)."""

from __future__ import annotations

from typing import Any, Final

from agentkit.provider_kit import (
    FinishReason,
    ReplyBuilder,
    Usage,
    as_object,
    as_text,
    as_token_count,
    get_set_fields,
    make_json_safe,
)

__all__ = ["parse_error", "parse_reason", "read_figures", "unwrap", "unwrap_sdk_object"]

_REASONS: Final = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
"""Finish reasons by their names in the API (Ollama source: llm/server.go, `DoneReason`).

The API has other finish reasons only for requests without a prompt.
"""

_TIMES: Final = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")


def read_figures(reply: ReplyBuilder, event: dict[str, Any]) -> None:
    """Adds the token counts and the durations in `event`, the last line of a native reply, to `reply`."""
    durations = {name: as_token_count(event[name]) for name in _TIMES if event.get(name) is not None}
    if durations:
        reply.notes["durations"] = durations
    read, written = event.get("prompt_eval_count"), event.get("eval_count")
    if read is not None or written is not None:
        reply.set_usage(Usage(as_token_count(read), as_token_count(written)))


def parse_reason(event: dict[str, Any]) -> tuple[FinishReason, str | None]:
    """Returns the finish reason of the last line of a reply, and the name of this reason in the API.

    If the line has no finish reason, returns STOP and None.
    """
    native = as_text(event.get("done_reason")) or None
    return _REASONS.get(native, FinishReason.OTHER) if native else FinishReason.STOP, native


def parse_error(error: object) -> str:
    """Returns the message of an error. Some proxies send the error as an object instead of a string."""
    return as_text(error) or as_text(as_object(error).get("message")) or str(make_json_safe(error))[:1_000]


def unwrap(value: object) -> object:
    """Returns an SDK object or a dict as JSON values. Returns strings and bytes unchanged."""
    return (
        value if isinstance(value, str | bytes | bytearray) else make_json_safe(value, "reply", unwrap_sdk_object)
    )


def unwrap_sdk_object(value: Any) -> Any:
    """Converts an SDK object to a dict without unset fields. Returns any other value unchanged.

    For an object whose only field is `value`, such as an image, returns the value of this field. The function does
    not use `model_dump`, because `model_dump` reads a file if the data of an image is the path of the file
    (ollama-python: `Image.serialize_model`).
    """
    fields = get_set_fields(value)
    if fields is None:
        return value
    return fields["value"] if fields.keys() == {"value"} else fields
