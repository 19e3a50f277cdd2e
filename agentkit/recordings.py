"""Replies on record: a JSON-lines file, one call a line, found again by the fingerprint of its request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
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
from agentkit.messages import Msg
from agentkit.storage import dump_message, load_message

__all__ = ["Recorded", "Recording", "fingerprint"]


def fingerprint(provider: str, model: str, request: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """The fingerprint of a call: equal for equal calls, in every process. 64 hexadecimal digits."""
    call = [provider, model, request, parameters]
    text = json.dumps(call, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Recorded:
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
    def from_dict(cls, found: Mapping[str, Any], place: str) -> Recorded:
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
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


_KINDS = (AuthError, BadRequestError, ContextLengthError, NetworkError, OverloadedError, RateLimitError)
_FACTS = ("said", "status", "code", "request_id", "retry_after", "place", "retryable")


def _dump_error(error: ModelError) -> dict[str, Any]:
    facts = {name: getattr(error, name) for name in _FACTS}
    return {"class": type(error).__name__, "provider": error.provider, **facts}


def _load_error(found: dict[str, Any]) -> ModelError:
    made = next((kind for kind in _KINDS if kind.__name__ == found.get("class")), ModelError)
    facts = {name: found[name] for name in _FACTS if name != "said" and found.get(name) is not None}
    return made(str(found.get("provider")), str(found.get("said")), **facts)


class Recording:
    """A file of recorded calls. What cannot be read as one is refused with its line, before any call is made."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._known: dict[str, Recorded] = {}
        self._writing = anyio.Lock()

    async def load(self, *, missing_ok: bool) -> None:
        """Read the file. Of several records of one call the last one counts."""
        try:
            text = await anyio.to_thread.run_sync(self.path.read_text, "utf-8")
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
        self._known[key] = Recorded.from_dict(held, place)

    def find(self, key: str) -> Recorded | None:
        """What came of a call, if it is on record."""
        return self._known.get(key)

    async def add(self, key: str, provider: str, model: str, found: Recorded) -> None:
        """Put a call on record, as one more line."""
        line = json.dumps({"fingerprint": key, "provider": provider, "model": model, **found.to_dict()})
        async with self._writing:
            self._known[key] = found
            await anyio.to_thread.run_sync(self._append, line)

    def _append(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
