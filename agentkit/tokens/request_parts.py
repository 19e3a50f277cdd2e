"""`RequestParts`: the parts of a request that cost tokens, such as texts, media, JSON values and tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pydantic_core import PydanticSerializationError, to_json

from agentkit.capabilities.wire_layout import LayoutSource, WireLayout, as_layout
from agentkit.json_values import find_value, make_json_safe
from agentkit.messages.media_types import guess_media_type
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["MediaPart", "RequestParts", "compact_json"]


class MediaPart(NamedTuple):
    """Media item in a request.

    Attributes:
        kind: "image", "audio", "video" or "document".
        data: Base64 text, a data URL or a URL. Empty if the content is unknown. For example, the request may have
            only the id of a file that the provider stores.
        detail: Level of detail as the API writes it, such as "low". Empty if the request has no level of detail.
    """

    kind: str
    data: str
    detail: str = ""

    def __repr__(self) -> str:
        parts = shorten_repr(self.kind, 40), shorten_repr(self.data, 80), shorten_repr(self.detail, 40)
        return f"MediaPart({', '.join(parts)})"


_LONG = 2_000  # in characters; longer strings in JSON are counted and cached separately


@dataclass(slots=True)
class RequestParts:
    """Parts of one request that cost tokens. The parts are not copied.

    Attributes:
        turns: Number of turns.
        texts: Message texts, speaker names, tool names, arguments of tool calls, and strings in JSON values.
        speakers: Number of turns with a speaker name.
        calls: Number of tool calls and tool results that have a tool name.
        fields: Number of keys of the JSON objects that contain a long string. Each key and each value of such an
            object is a separate item of `texts`.
        media: Images, audio, video and documents.
        sealed: Base64 text of encrypted state or of a text document.
        tools: Tools in the API's format.
        settings: All other objects and lists, such as a tool choice or an output schema. Empty if a chat template
            wrote the request, because only its prompt has tokens.
        layout: Layout of the request, which names its keys.
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
    layout: WireLayout = field(default_factory=WireLayout)

    __repr__ = bounded_repr

    @classmethod
    def of(cls, request: Mapping[str, Any], provider: LayoutSource) -> RequestParts:
        """Splits a request into its parts.

        `provider` is the provider that the request is for, or its formatter or `WireLayout`.
        """
        parts = cls(layout=as_layout(provider))
        for name, part in parts.layout.read_items(request):
            parts._add(name, part)
        return parts

    def _add(self, name: str, part: Any) -> None:
        layout = self.layout
        if name == layout.turns or (layout.prompt and name == layout.prompt):
            if isinstance(part, list):
                turns = cast("list[Any]", part)
                self.turns += len(turns) if name == layout.turns else 1
                self._walk(turns.copy())
            elif part is not None:
                self.turns += 1
                self._walk([part])
        elif name == layout.tools and isinstance(part, list):
            self.tools += cast("list[Any]", part)
        elif isinstance(part, dict | list) and part and not layout.is_rendered:
            self.settings.append(part)

    def _walk(self, waiting: list[Any]) -> None:
        """Adds the parts in `waiting` to the fields of this object. The loop appends nested parts to `waiting`.

        Keep the loop fast, because a budget that omits messages spends most of its time here.
        """
        add, push, extend = self.texts.append, waiting.append, waiting.extend
        layout = self.layout
        texts, uncounted, holders = layout.texts, layout.uncounted, layout.holders
        special, name, role = layout.special, layout.name, layout.role
        for part in waiting:
            if part.__class__ is not dict:
                self._add_leaf(part)
                continue
            fields: dict[str, Any] = part
            for key, item in fields.items():
                kind = item.__class__
                if kind is str:
                    if key in texts:
                        add(item)
                    elif key in uncounted:
                        continue
                    elif key == name:
                        add(item)
                        if role in fields:
                            self.speakers += 1
                        else:
                            self.calls += 1
                    elif key in special:
                        self._add_special(fields, key, item, waiting)
                    else:
                        add(item)
                elif key in holders:
                    self._add_special(fields, key, item, waiting)
                elif kind is list:
                    if key not in uncounted:
                        extend(item)
                elif kind is dict and key not in uncounted:
                    push(item)

    def _add_leaf(self, part: Any) -> None:
        if isinstance(part, str):
            self.texts.append(part)
        elif part is not None:
            self.texts.append(compact_json(part))

    def _add_special(self, part: dict[str, Any], key: str, item: Any, waiting: list[Any]) -> None:
        layout = self.layout
        if key in layout.json:
            self._add_json(item)
        elif key in layout.sealed or str(part.get(layout.type)) in layout.sealed_types:
            self.sealed.append(str(item))
        elif item:
            self._add_media(part, key, item, waiting)

    def _add_media(self, part: dict[str, Any], key: str, item: Any, waiting: list[Any]) -> None:
        kind = self.layout.media[key]
        if isinstance(item, list):  # images of a turn, or the frames of a video
            for inner in cast("list[Any]", item):
                self.media.append(MediaPart("image", inner if isinstance(inner, str) else ""))
        elif encoded := _find_base64_text(item, ""):
            self.sealed.append(encoded)
        elif not isinstance(item, dict):
            detail = _find_value(part, self.layout.media_details)
            text = item if isinstance(item, str) else ""
            self.media.append(MediaPart(kind, text, detail if isinstance(detail, str) else ""))
        else:
            self._add_media_object(part, kind, cast("dict[str, Any]", item), waiting)

    def _add_media_object(
        self, part: dict[str, Any], kind: str, fields: dict[str, Any], waiting: list[Any]
    ) -> None:
        """Adds a media item that is a JSON object. For a document with a text, adds only the text."""
        layout = self.layout
        if layout.media_texts and (text_key := layout.media_texts.get(str(fields.get(layout.type)))):
            text = fields.get(text_key)
            waiting += text if isinstance(text, list) else [text]
            return
        media_type = str(_find_value(fields, layout.media_types) or "")
        if "/" not in media_type:  # the value is a file suffix, such as `txt`
            media_type = guess_media_type(f".{media_type}") or ""
        data = _find_value(fields, layout.media_data)
        if text := _find_base64_text(data, media_type):
            self.sealed.append(text)
            return
        named = media_type.partition("/")[0] or str(part.get(layout.type))
        detail = _find_value(fields, layout.media_details) or _find_value(part, layout.media_details)
        self.media.append(
            MediaPart(
                named if named in ("image", "audio", "video") else kind,
                data if isinstance(data, str) else "",
                detail if isinstance(detail, str) else "",
            )
        )

    def _add_json(self, item: Any) -> None:
        """Adds a JSON value of the application to `texts`, usually as one text.

        If a value of an object is a long string, each key and each value of this object becomes a separate text.
        The token count of each text can then be cached.
        """
        if item.__class__ is str:
            self.texts.append(item)
            return
        if item.__class__ is dict:
            fields: dict[str, Any] = item
            for inner in fields.values():
                if type(inner) is str and len(inner) > _LONG:
                    self._add_long_json(fields)
                    return
        self.texts.append(compact_json(item))

    def _add_long_json(self, fields: dict[str, Any]) -> None:
        self.fields += len(fields)
        self.texts.extend(fields)
        for inner in fields.values():
            self._add_json(inner)


def _find_value(fields: Mapping[str, Any], paths: tuple[str, ...]) -> Any:
    """Returns the first non-empty value at one of the paths in a JSON object. Returns None if all are empty."""
    for path in paths:
        value = find_value(fields, path) if "." in path else fields.get(path)
        if value:
            return value
    return None


def _find_base64_text(data: object, media_type: str) -> str:
    """Returns the base64 data of a text document. Returns an empty string for a URL and for other media."""
    if not isinstance(data, str):
        return ""
    if data.startswith("data:text/"):
        header, _, text = data.partition(",")
        return text if header.endswith(";base64") else ""
    return data if media_type.startswith("text/") and ":" not in data[:64] else ""


def compact_json(value: Any) -> str:
    """Returns a value as JSON text without spaces.

    Python objects that are not JSON values become their repr. Lone surrogates become U+FFFD.
    """
    try:
        return to_json(value, bytes_mode="base64", fallback=repr).decode()
    except PydanticSerializationError:  # the value has a lone surrogate, which UTF-8 cannot encode
        return compact_json(make_json_safe(value))
