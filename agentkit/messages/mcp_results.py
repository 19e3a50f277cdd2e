"""Conversion of tool results from the Model Context Protocol (MCP) to the fields of a `ToolResultBlock`.

The module imports no MCP SDK. A result may be an object from an SDK (a pydantic model or a dataclass) or a dict.
The keys of a value show whether the value is a result. Source of the keys: MCP specification, versions 2025-11-25
and 2026-07-28, "Tools", "Tool Result".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, cast

from agentkit.errors import MessageError
from agentkit.json_values import dump_model, make_json_safe, parse_json
from agentkit.messages.media_types import canonical_media_type, guess_media_type, is_media_type

__all__ = ["McpItem", "McpResult", "read_mcp_item", "read_mcp_result"]


class McpResult(Protocol):
    """Interface of a `CallToolResult` object from an MCP SDK."""

    @property
    def content(self) -> Sequence[Any]:
        """List of content items, such as texts and images."""
        ...


class McpItem(Protocol):
    """Interface of a content item from an MCP SDK. The item is a pydantic model."""

    @property
    def type(self) -> str:
        """Type of the content, such as `text` or `image`."""
        ...

    def model_dump(self) -> dict[str, Any]:
        """Converts the item to a dict."""
        ...


_WIRE_KEYS: Final = {
    "structured_content": "structuredContent",
    "is_error": "isError",
    "meta": "_meta",
    "result_type": "resultType",
    "mime_type": "mimeType",
    "last_modified": "lastModified",
}
"""Maps the attribute names of Python SDKs to the keys of MCP."""

_RESULT_KEYS: Final = frozenset({"content", "structuredContent", "isError", "_meta", "resultType"})
_ABSENT: Final = object()


def read_mcp_result(value: object) -> dict[str, Any] | None:
    """Converts an MCP `CallToolResult` to fields of a `ToolResultBlock`. Returns None for any other value.

    The fields are `output` (text, or a list of block dicts) and `is_error`. If the server sent `_meta`, or keys
    that MCP does not define, the field `metadata` contains these values. MCP recommends that the text content
    repeats `structuredContent`. If the text content does not repeat this value, the value is added to `output`
    as JSON text.
    """
    data = _as_result(value)
    if data is None:
        return None
    content = [{"type": "text", "text": item} if isinstance(item, str) else item for item in data["content"]]
    blocks = [_block(item, index) for index, item in enumerate(content)]
    structured = data.get("structuredContent")
    if structured is not None and not _is_repeated(
        structured, [item["text"] for item in content if _is_text(item)]
    ):
        blocks.append({"type": "text", "text": json.dumps(structured, ensure_ascii=False, separators=(",", ":"))})
    fields: dict[str, Any] = {"output": _output(blocks), "is_error": bool(data.get("isError"))}
    extra = {key: data[key] for key in data.keys() - (_RESULT_KEYS - {"_meta"}) if data[key] is not None}
    return {**fields, "metadata": extra} if extra else fields


def read_mcp_item(value: object, index: int = 0) -> dict[str, Any] | None:
    """Converts one content item of an MCP result to a block dict. Returns None for any other value.

    Also returns None for a text item with keys that MCP does not define, because the item may be a block dict of
    agentkit.

    Args:
        value: Content item as an SDK object or a dict.
        index: Index of the item, for error texts.

    """
    data = _as_item(value)
    return _block(data, index) if data and _is_content(data) and _is_closed(data) else None


# -- shapes -------------------------------------------------------------------------------------------------------


def _as_result(value: object) -> dict[str, Any] | None:
    """Converts an MCP `CallToolResult` to a dict with the keys of MCP. Returns None for any other value."""
    if isinstance(value, Mapping):
        data = _rename_keys(cast("Mapping[Any, Any]", value))
    else:
        marker = _attribute(value, "isError", "is_error")
        if not isinstance(marker, bool | None):
            return None
        names = ("content", "structured_content", "structuredContent", "meta", "_meta")
        data = _rename_keys({name: getattr(value, name) for name in names if hasattr(value, name)})
        data["isError"] = bool(marker)
    content = data.get("content")
    if isinstance(content, str) and isinstance(data.get("isError"), bool):
        content = [content]
    if not isinstance(content, list | tuple) or data.get("resultType", "complete") != "complete":
        return None
    data["content"] = [_as_item(item) or item for item in cast("Sequence[object]", content)]
    return cast("dict[str, Any]", make_json_safe(data)) if _is_result(data) else None


def _attribute(value: object, *names: str) -> object:
    return next((getattr(value, name) for name in names if hasattr(value, name)), _ABSENT)


def _is_result(data: Mapping[str, Any]) -> bool:
    """Returns True if a dict is an MCP `CallToolResult`, and not another object with the key `content`."""
    content = cast("list[object]", data["content"])
    if isinstance(data.get("isError"), bool):
        return True
    has_more = bool(content) or data.get("structuredContent") is not None
    items = (isinstance(item, dict) and _is_content(cast("dict[str, Any]", item)) for item in content)
    return has_more and data.keys() <= _RESULT_KEYS and all(items)


def _as_item(value: object) -> dict[str, Any] | None:
    """Converts a content item to a dict with the keys of MCP. Returns None if the item has no `type`."""
    if isinstance(value, Mapping):
        data = _rename_keys(cast("Mapping[Any, Any]", value))
        return cast("dict[str, Any]", make_json_safe(data)) if isinstance(data.get("type"), str) else None
    return cast("dict[str, Any]", make_json_safe(_dump(value))) or None


def _is_closed(data: Mapping[str, Any]) -> bool:
    return data["type"] != "text" or data.keys() <= {"type", "text", "annotations", "_meta"}


def _is_content(data: Mapping[str, Any]) -> bool:
    match data:
        case {"type": "text", "text": str()}:
            return True
        case {"type": "image" | "audio", "data": str(), "mimeType": str()}:
            return True
        case {"type": "resource", "resource": {"uri": str(), "text": str()} | {"uri": str(), "blob": str()}}:
            return True
        case {"type": "resource_link", "uri": str(), "name": str()}:
            return True
        case _:
            return False


def _dump(value: object) -> dict[str, Any]:
    """Converts an SDK object to a dict with the keys of MCP. Returns an empty dict for any other value."""
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type) or not isinstance(getattr(value, "type", None), str):
        return {}
    data = dump_model(value, by_alias=True, exclude_none=True)
    return _rename_keys(cast("Mapping[Any, Any]", data)) if isinstance(data, Mapping) else {}


def _rename_keys(data: Mapping[Any, Any]) -> dict[str, Any]:
    renamed = {_WIRE_KEYS.get(str(key), str(key)): item for key, item in data.items()}
    uri, annotations = renamed.get("uri"), renamed.get("annotations")
    if isinstance(renamed.get("resource"), Mapping):
        renamed["resource"] = _rename_keys(cast("Mapping[Any, Any]", renamed["resource"]))
    if isinstance(annotations, Mapping):
        pairs = _rename_keys(cast("Mapping[Any, Any]", annotations)).items()
        renamed["annotations"] = {key: item for key, item in pairs if item is not None}
    if type(uri).__module__.startswith("pydantic"):  # an SDK may store the URI as an AnyUrl, which is not a string
        renamed["uri"] = str(uri)
    return renamed


# -- blocks -------------------------------------------------------------------------------------------------------


def _block(item: Any, index: int) -> dict[str, Any]:
    """Converts an MCP content item to a block dict. An item that cannot be read becomes an invalid block."""
    if not isinstance(item, dict) or not _is_content(cast("dict[str, Any]", item)):
        reason = "expected an MCP content item (text, image, audio, resource or resource_link)"
        return {"type": "invalid", "data": item, "reason": reason, "place": f"content[{index}]"}
    data = cast("dict[str, Any]", item)
    match data["type"]:
        case "text":
            block = {"type": "text", "text": data["text"]}
        case "image" | "audio" as kind:
            block = _media(kind, data["data"], data["mimeType"])
        case "resource_link":
            block = {"type": "text", "text": _link(data)}
        case _:
            return _resource(data)
    return _with_metadata(block, {key: data.get(key) for key in ("annotations", "_meta")})


def _resource(data: dict[str, Any]) -> dict[str, Any]:
    inner = cast("dict[str, Any]", data["resource"])
    uri, media_type = str(inner["uri"]), inner.get("mimeType")
    if "text" in inner:
        block = {"type": "text", "text": f"Resource {uri}:\n{inner['text']}"}
    else:
        media_type = media_type if isinstance(media_type, str) else guess_media_type(uri) or _UNKNOWN_TYPE
        family = canonical_media_type(media_type).partition("/")[0]
        kind = family if family in ("image", "audio", "video") else "document"
        block = _media(kind, inner["blob"], media_type)
        if kind == "document":
            block["title"] = uri
    extra = {key: inner.get(key, data.get(key)) for key in ("annotations", "_meta")}
    return _with_metadata(block, {"uri": uri, "mimeType": inner.get("mimeType"), **extra})


_UNKNOWN_TYPE: Final = "application/octet-stream"


def _media(kind: str, data: str, media_type: str) -> dict[str, Any]:
    if data.startswith("data:"):
        return {"type": kind, "source": {"type": "url", "url": data}}
    named = media_type if is_media_type(media_type) else _UNKNOWN_TYPE
    return {"type": kind, "source": {"type": "base64", "media_type": named, "data": data}}


def _link(data: Mapping[str, Any]) -> str:
    """Returns the text for a resource link. The text has the URI, so that the model can request the resource."""
    size = f"{data['size']} bytes" if isinstance(data.get("size"), int) else None
    facts = [str(fact) for fact in (data.get("mimeType"), size) if fact]
    link = f"Resource link {data.get('title') or data['name']}: {data['uri']}"
    line = f"{link} ({', '.join(facts)})" if facts else link
    return f"{line}\n{data['description']}" if data.get("description") else line


def _with_metadata(block: dict[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    present = {key: item for key, item in metadata.items() if item is not None}
    return {**block, "metadata": present} if present else block


def _output(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if not blocks:
        return ""
    is_plain = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    return cast("str", blocks[0]["text"]) if is_plain else blocks


# -- structured content -------------------------------------------------------------------------------------------


def _is_text(item: object) -> bool:
    return isinstance(item, dict) and _is_content(cast("Any", item)) and cast("Any", item)["type"] == "text"


def _is_repeated(structured: object, texts: Sequence[str]) -> bool:
    """Returns True if the text content of an MCP result repeats its structured content.

    The text is usually the JSON text of the structured content. If a tool returns a value that is not an object,
    the structured content from the Python SDK is `{"result": value}`. The text content is then one text for the
    value, or one text for each item if the value is a list.
    """
    if _is_any_text(structured, texts):
        return True
    if not isinstance(structured, dict) or cast("dict[str, Any]", structured).keys() != {"result"}:
        return False
    value = cast("dict[str, Any]", structured)["result"]
    if isinstance(value, list) and len(cast("list[Any]", value)) == len(texts):
        return all(_is_any_text(item, [text]) for item, text in zip(cast("list[Any]", value), texts, strict=True))
    return _is_any_text(cast("object", value), texts)


def _is_any_text(value: object, texts: Sequence[str]) -> bool:
    """Returns True if one of the texts equals the value, or is the JSON text of the value.

    The spacing and the key order of the JSON text do not matter.
    """
    canonical = _canonical(value)
    return any(text == value or _canonical_text(text) == canonical for text in texts)


def _canonical_text(text: str) -> str | None:
    try:
        return _canonical(make_json_safe(parse_json(text)))
    except MessageError:
        return None


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)
