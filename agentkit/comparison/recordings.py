"""Recordings of model calls: JSON Lines files with one model call per line.

The fingerprint of a model call is a hash of the provider, the model, the request and the parameters of the call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from os import SEEK_END
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread

from agentkit.errors import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    MessageError,
    ModelError,
    NetworkError,
    OptionError,
    OverloadedError,
    RateLimitError,
)
from agentkit.json_values import as_object, make_json_safe
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_message, load_message
from agentkit.reprs import describe_value

__all__ = ["RecordedCall", "RecordingFile", "fingerprint"]


def fingerprint(provider: str, model: str, request: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Returns the fingerprint of a model call. The fingerprint has 64 hexadecimal digits.

    Equal arguments have equal fingerprints in every process. Parameters with the value None are ignored.
    """
    call = [provider, model, request, {name: item for name, item in parameters.items() if item is not None}]
    text = json.dumps(call, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=make_json_safe)
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """Recorded outcome of a model call.

    Attributes:
        reply: Reply of the model. None if the call failed.
        error: Error of the model call. None if there is a reply.
        first_token: Seconds from the request to the first token. None if unknown.
        total: Seconds from the request to the end of the model call. None if unknown.
    """

    reply: Msg | None = None
    error: ModelError | None = None
    first_token: float | None = None
    total: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Converts the outcome to a dict of JSON values."""
        return {
            "reply": dump_message(self.reply) if self.reply else None,
            "error": _dump_error(self.error) if self.error else None,
            "first_token": self.first_token,
            "total": self.total,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], place: str) -> RecordedCall:
        """Loads the outcome of a model call from JSON values.

        Keys that `to_dict` does not write are ignored. An invalid time becomes None. Errors begin with `place`.

        Raises:
            MessageError: The reply is invalid, or `values` does not have exactly one of a reply and an error.
        """
        reply, error = values.get("reply"), values.get("error")
        if (reply is None) == (not isinstance(error, dict)):
            reason = f"expected either a reply or an error, got {'neither' if reply is None else 'both'}"
            raise MessageError(place, reason, "Remove the line, and record the model call again.")
        return cls(
            None if reply is None else load_message(reply, f"{place}.reply"),
            _load_error(cast("dict[str, Any]", error)) if isinstance(error, dict) else None,
            _parse_seconds(values.get("first_token")),
            _parse_seconds(values.get("total")),
        )


def _parse_seconds(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1e9:
        return None
    return float(value)


_ERRORS = (AuthError, BadRequestError, ContextLengthError, NetworkError, OverloadedError, RateLimitError)
_ATTRIBUTES = ("status", "code", "request_id", "retry_after", "place", "retryable")


def _dump_error(error: ModelError) -> dict[str, Any]:
    head = {"class": type(error).__name__, "provider": error.provider, "message": error.provider_message}
    return {**head, **{name: getattr(error, name) for name in _ATTRIBUTES}}


def _load_error(values: dict[str, Any]) -> ModelError:
    error_class = next((cls for cls in _ERRORS if cls.__name__ == values.get("class")), ModelError)
    attributes = {name: values[name] for name in _ATTRIBUTES if values.get(name) is not None}
    # Versions of agentkit before 0.4 wrote the key `said` instead of `message`.
    message = values.get("message", values.get("said"))
    return error_class(str(values.get("provider")), str(message), **attributes)


class RecordingFile:
    """JSON Lines file of recorded model calls."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        # maps each fingerprint to a dict from labels to recorded calls; the newest call comes last
        self._calls: dict[str, dict[str, RecordedCall]] = {}
        self._lock = anyio.Lock()

    async def check(self) -> None:
        """Checks that the file can be written. Creates the file if it does not exist.

        Raises:
            OptionError: The file cannot be written.
        """
        try:
            await anyio.to_thread.run_sync(self._append, "")
        except OSError as error:
            reason = f"cannot write {str(self.path)!r} ({error.strerror})"
            raise OptionError("record", reason, "Pass the path of a file that can be written.") from None

    async def load(self, *, missing_ok: bool) -> None:
        """Reads the file. If two recorded calls have the same fingerprint and label, the later call is used.

        If `missing_ok` is True, a missing file is treated as an empty file.

        Raises:
            OptionError: The file cannot be read.
            MessageError: A line is not a recorded call. The error names the path and the line number.
        """
        advice = "Pass the path of a recording."
        try:
            text = await anyio.to_thread.run_sync(self.path.read_text, "utf-8-sig")
        except FileNotFoundError:
            if missing_ok:
                return
            raise OptionError("replay", f"there is no file {str(self.path)!r}", advice) from None
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError("replay", f"cannot read {str(self.path)!r} ({error})", advice) from None
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                self._load_line(line, f"{self.path}:{number}")

    def _load_line(self, line: str, place: str) -> None:
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MessageError(place, f"the line is not JSON ({error})", "Fix or remove the line.") from None
        record = as_object(value)
        key = record.get("fingerprint")
        if not isinstance(key, str):
            reason = f"expected an object with a string `fingerprint`, got {describe_value(value)}"
            raise MessageError(place, reason, "Fix or remove the line.")
        self._store(key, str(record.get("label")), RecordedCall.from_dict(record, place))

    def _store(self, key: str, label: str, call: RecordedCall) -> None:
        calls = self._calls.setdefault(key, {})
        calls.pop(label, None)
        calls[label] = call

    def find(self, key: str, label: str) -> RecordedCall | None:
        """Returns the recorded call with the fingerprint `key` and the label `label`.

        If the recorded calls with this fingerprint have only other labels, returns the newest of these calls. If
        no recorded call has this fingerprint, returns None.
        """
        calls = self._calls.get(key, {})
        return calls.get(label) or next(reversed(calls.values()), None)

    async def add(self, key: str, label: str, provider: str, model: str, call: RecordedCall) -> None:
        """Appends a recorded call to the file.

        Raises:
            OSError: The file cannot be written.
        """
        head = {"fingerprint": key, "label": label, "provider": provider, "model": model}
        line = json.dumps({**head, **call.to_dict()})
        async with self._lock:
            self._store(key, label, call)
            await anyio.to_thread.run_sync(self._append, f"{line}\n")

    def _append(self, text: str) -> None:
        """Appends text to the file. If the last line of the file is incomplete, the text starts on a new line."""
        with self.path.open("ab+") as file:
            if text and file.tell():
                file.seek(-1, SEEK_END)
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode())
