"""Replies on record: a JSON-lines file, one call a line, found again by the fingerprint of its request."""

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
from agentkit.json_values import make_json_safe
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_message, load_message

__all__ = ["RecordedCall", "RecordingFile", "fingerprint"]


def fingerprint(provider: str, model: str, request: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The fingerprint of a call: equal for equal calls, in every process. 64 hexadecimal digits."""
    given = {name: item for name, item in parameters.items() if item is not None}  # None leaves one out
    call = [provider, model, request, given]
    text = json.dumps(call, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=make_json_safe)
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """What came of a call: a reply or an error, and the seconds until its first token and until its end."""

    reply: Msg | None = None
    error: ModelError | None = None
    first_token: float | None = None
    total: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "reply": dump_message(self.reply) if self.reply else None,
            "error": _dump_error(self.error) if self.error else None,
            "first_token": self.first_token,
            "total": self.total,
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any], place: str) -> RecordedCall:
        """The same from JSON values. Raises MessageError for what is none."""
        reply, error = found.get("reply"), found.get("error")
        if (reply is None) == (not isinstance(error, dict)):
            raise MessageError(place, "it has neither a reply nor an error", "Record the call anew.")
        return cls(
            None if reply is None else load_message(reply, f"{place}.reply"),
            _load_error(cast("dict[str, Any]", error)) if isinstance(error, dict) else None,
            _seconds(found.get("first_token")),
            _seconds(found.get("total")),
        )


def _seconds(found: object) -> float | None:
    if not isinstance(found, int | float) or isinstance(found, bool) or not 0 <= found < 1e9:
        return None
    return float(found)


_KINDS = (AuthError, BadRequestError, ContextLengthError, NetworkError, OverloadedError, RateLimitError)
_FACTS = ("status", "code", "request_id", "retry_after", "place", "retryable")


def _dump_error(error: ModelError) -> dict[str, Any]:
    facts = {name: getattr(error, name) for name in _FACTS}
    head = {"class": type(error).__name__, "provider": error.provider, "message": error.provider_message}
    return {**head, **facts}


def _load_error(found: dict[str, Any]) -> ModelError:
    made = next((kind for kind in _KINDS if kind.__name__ == found.get("class")), ModelError)
    facts = {name: found[name] for name in _FACTS if found.get(name) is not None}
    message = found.get("message", found.get("said"))  # `said` in recordings before 0.4
    return made(str(found.get("provider")), str(message), **facts)


class RecordingFile:
    """A file of recorded calls. What cannot be read as one is refused with its line, before any call is made."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._known: dict[str, dict[str, RecordedCall]] = {}  # by fingerprint and label, the last one last
        self._writing = anyio.Lock()

    async def check(self) -> None:
        """Make the file, if it is not there. Raises OptionError where it cannot be written."""
        try:
            await anyio.to_thread.run_sync(self._append, "")
        except OSError as error:
            raise OptionError("record", f"{self.path} cannot be written ({error})", "Name a file.") from None

    async def load(self, *, missing_ok: bool) -> None:
        """Read the file. Of several records of one call under one label the last one counts."""
        try:
            text = await anyio.to_thread.run_sync(self.path.read_text, "utf-8-sig")
        except FileNotFoundError:
            if missing_ok:
                return
            raise OptionError("replay", f"{self.path} is not there", "Record it first.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise OptionError("replay", f"{self.path} cannot be read ({error})", "Name a recording.") from None
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                self._take(line, f"{self.path}:{number}")

    def _take(self, line: str, place: str) -> None:
        try:
            found: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MessageError(place, f"this is not JSON ({error})", "Mend or remove the line.") from None
        held = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        key = held.get("fingerprint")
        if not isinstance(key, str):
            raise MessageError(place, "it has no fingerprint", "Name a recording.")
        self._keep(key, str(held.get("label")), RecordedCall.from_dict(held, place))

    def _keep(self, key: str, label: str, found: RecordedCall) -> None:
        records = self._known.setdefault(key, {})
        records.pop(label, None)
        records[label] = found

    def find(self, key: str, label: str) -> RecordedCall | None:
        """What came of a call, if it is on record: under this label, else under the last one that made it."""
        records = self._known.get(key, {})
        return records.get(label) or next(reversed(records.values()), None)

    async def add(self, key: str, label: str, provider: str, model: str, found: RecordedCall) -> None:
        """Put a call on record, as one more line."""
        told = {"fingerprint": key, "label": label, "provider": provider, "model": model}
        line = json.dumps({**told, **found.to_dict()})
        async with self._writing:
            self._keep(key, label, found)
            await anyio.to_thread.run_sync(self._append, f"{line}\n")

    def _append(self, text: str) -> None:
        """Add text behind what is there, which may have been cut off within a line."""
        with self.path.open("ab+") as file:
            if text and file.tell():
                file.seek(-1, SEEK_END)
                text = text if file.read(1) == b"\n" else f"\n{text}"
            file.write(text.encode())
