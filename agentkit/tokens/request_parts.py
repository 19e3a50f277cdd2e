"""A native request taken apart into what costs tokens: texts, media, a caller's own JSON, tools and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pydantic_core import to_json

from agentkit.capabilities.wire_layout import CACHE_MARKERS
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["MediaPart", "RequestParts", "compact_json"]


class MediaPart(NamedTuple):
    """A picture, sound, film or document in a request: `data` is base64 text, a data URL or a URL.

    `data` is "" where the content is not known: a stored file's id, bytes, a file that was not read yet.
    """

    kind: str
    data: str
    detail: str = ""

    def __repr__(self) -> str:
        parts = shorten_repr(self.kind, 40), shorten_repr(self.data, 80), shorten_repr(self.detail, 40)
        return f"Medium({', '.join(parts)})"


_TURN_LISTS = frozenset({"messages", "contents", "input"})
_PROMPTS = frozenset({"system", "instructions", "system_instruction", *_TURN_LISTS})

# Words of the wire, which the overhead of a message stands for, and proofs, which are no prompt.
_SILENT = frozenset(
    {
        *("role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "mime_type", "media_type", "detail"),
        *("format", "filename", "signature", "thought_signature", "index"),
        *CACHE_MARKERS,
    }
)
# A caller's own JSON, whose keys are no wire's: Anthropic's input, Gemini's args and response, Ollama's arguments.
_JSON = frozenset({"input", "args", "arguments", "response"})
# Where media stand on the wires: Chat, Responses, Anthropic, Gemini, Ollama, DashScope, vLLM.
_MEDIA = {
    "image_url": "image",
    "image": "image",
    "images": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "audio": "audio",
    "video_url": "video",
    "video": "video",
    "file": "document",
    "file_url": "document",
    "file_data": "document",
    "inline_data": "document",
    "source": "document",
    "data": "document",
    "result": "image",  # of Responses' image_generation_call
}
_LONG = 2_000  # characters
_SEALED = "encrypted_content"
_MARKED = frozenset({"name", _SEALED, *_MEDIA})  # whose strings are no plain text
_PLAIN = frozenset({"content", "text", "thinking", "output", "arguments"})  # strings there are what is said
_HOLDERS = frozenset({*_JSON, *_MEDIA})  # whose objects and lists are no plain parts
_LEAVES = ("url", "data", "file_data", "file_uri", "image_url")


@dataclass(slots=True)
class RequestParts:
    """The parts of one request. Nothing of it is copied and nothing changed.

    turns     how many messages, contents or items there are
    texts     what is said: contents, names, tool names, argument texts, keys and strings of JSON
    speakers  how many messages bear a name, `calls` how many calls and results a tool's name
    fields    how many keys and scalars of a caller's JSON there are
    media     pictures, sounds, films and documents
    sealed    base64 text that stands for words of about three quarters of its bytes: encrypted thoughts, texts
    tools     the native tools, `settings` all other parts that are objects: choices, output schemas
    """

    turns: int = 0
    texts: list[str] = field(default_factory=list[str])
    speakers: int = 0
    calls: int = 0
    fields: int = 0
    media: list[MediaPart] = field(default_factory=list[MediaPart])
    sealed: list[str] = field(default_factory=list[str])
    tools: list[Any] = field(default_factory=list[Any])
    settings: list[Any] = field(default_factory=list[Any])

    __repr__ = bounded_repr

    @classmethod
    def of(cls, request: Mapping[str, Any]) -> RequestParts:
        """The parts of a request: the keyword arguments of the SDK's call."""
        parts = cls()
        for name, part in request.items():
            if name == "config" and isinstance(part, dict):  # Gemini
                for inner, item in cast("dict[str, Any]", part).items():
                    parts._add(inner, item)
            else:
                parts._add(name, part)
        return parts

    def _add(self, name: str, part: Any) -> None:
        if name in _PROMPTS:
            if isinstance(part, list):
                turns = cast("list[Any]", part)
                self.turns += len(turns) if name in _TURN_LISTS else 1
                self._walk(turns.copy())
            elif part is not None:
                self.turns += 1
                self._walk([part])
        elif name == "tools" and isinstance(part, list):
            self.tools += cast("list[Any]", part)
        elif isinstance(part, dict | list) and part:
            self.settings.append(part)

    def _walk(self, waiting: list[Any]) -> None:
        """Take apart what waits. The hottest loop of a budget: see tests/benchmarks."""
        add, push, extend, plain, silent = self.texts.append, waiting.append, waiting.extend, _PLAIN, _SILENT
        for part in waiting:
            if part.__class__ is not dict:
                self._odd(part)
                continue
            held: dict[str, Any] = part
            for key, item in held.items():
                kind = item.__class__
                if kind is str:
                    if key in plain:
                        add(item)
                    elif key not in silent:
                        self._string(held, key, item, waiting)
                elif key in _HOLDERS:
                    self._special(held, key, item, waiting)
                elif kind is list:
                    extend(item)
                elif kind is dict and key not in silent:
                    push(item)

    def _string(self, part: dict[str, Any], key: str, item: str, waiting: list[Any]) -> None:
        """A string that is neither plainly text nor plainly a word of the wire."""
        if key not in _MARKED:
            self.texts.append(item)
        elif key == "name":
            self.texts.append(item)
            if "role" in part:
                self.speakers += 1
            else:
                self.calls += 1
        else:
            self._special(part, key, item, waiting)

    def _odd(self, part: Any) -> None:
        if isinstance(part, str):
            self.texts.append(part)
        elif part is not None:
            self.texts.append(compact_json(part))

    def _special(self, part: dict[str, Any], key: str, item: Any, waiting: list[Any]) -> None:
        if key in _JSON:
            self._json(item)
        elif key == _SEALED or part.get("type") == "redacted_thinking":
            self.sealed.append(str(item))
        elif item:
            self._medium(part, key, item, waiting)

    def _medium(self, part: dict[str, Any], key: str, item: Any, waiting: list[Any]) -> None:
        kind = _MEDIA[key]
        if isinstance(item, list):  # Ollama's images, and the frames of DashScope's video
            for inner in cast("list[Any]", item):
                self.media.append(MediaPart("image", inner if isinstance(inner, str) else ""))
        elif not isinstance(item, dict):
            detail = str(part.get("detail") or "")
            self.media.append(MediaPart(kind, item if isinstance(item, str) else "", detail))
        else:
            self._held(part, kind, cast("dict[str, Any]", item), waiting)

    def _held(self, part: dict[str, Any], kind: str, held: dict[str, Any], waiting: list[Any]) -> None:
        """A medium in an object of its own, or the text that Anthropic calls a document's source."""
        if held.get("type") == "text":
            self.texts.append(str(held.get("data", "")))
        elif held.get("type") == "content":
            waiting.append({"content": held.get("content")})
        else:
            mime = str(held.get("media_type") or held.get("mime_type") or "")
            if mime.startswith("text/") and isinstance(held.get("data"), str):
                self.sealed.append(held["data"])  # base64 of a text
                return
            named = mime.partition("/")[0] or str(part.get("type"))
            leaf = next((found for name in _LEAVES if (found := held.get(name))), "")
            detail = held.get("detail") or part.get("detail") or part.get("media_resolution")
            if isinstance(detail, dict):
                detail = cast("dict[str, Any]", detail).get("level")
            kind = named if named in ("image", "audio", "video") else kind
            self.media.append(MediaPart(kind, leaf if isinstance(leaf, str) else "", str(detail or "")))

    def _json(self, item: Any) -> None:
        """A caller's JSON as its text; the long strings of an object by themselves, counted once in their life."""
        if item.__class__ is str:
            self.texts.append(item)
            return
        if item.__class__ is dict:
            found: dict[str, Any] = item
            for inner in found.values():
                if type(inner) is str and len(inner) > _LONG:
                    self._long_json(found)
                    return
        self.texts.append(compact_json(item))

    def _long_json(self, found: dict[str, Any]) -> None:
        self.fields += len(found)
        self.texts.extend(found)
        for inner in found.values():
            self._json(inner)


def compact_json(found: Any) -> str:
    """JSON as it is written out; what is no JSON as its representation."""
    return to_json(found, bytes_mode="base64", fallback=repr).decode()
