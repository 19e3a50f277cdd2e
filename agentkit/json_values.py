"""Conversion of native values (SDK objects, dicts, JSON text) to plain JSON values.

Replies and logs may contain values that JSON or UTF-8 cannot represent. This module converts or replaces these
values.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from pydantic_core import from_json, to_json

from agentkit.errors import MessageError
from agentkit.loggers import get_logger
from agentkit.reprs import describe_value

__all__ = [
    "as_list",
    "as_object",
    "as_text",
    "copy_json",
    "dump_model",
    "ensure_json_safe",
    "find_value",
    "get_set_fields",
    "is_encodable",
    "is_json_safe",
    "make_json_safe",
    "native_to_json",
    "parse_arguments",
    "parse_json",
    "read_arguments",
    "replace_surrogates",
    "reply_to_json",
]


def native_to_json(value: object) -> Any:
    """Converts a native reply or stream event to JSON values.

    The value is an SDK object, a dict, or JSON text. Returns a dict unchanged. The objects of all SDKs are
    pydantic models or dicts, so no SDK is imported.

    Raises:
        MessageError: The value is neither an SDK object nor a dict nor JSON text.

    """
    if type(value) is dict:
        return cast("dict[str, Any]", value)
    if isinstance(value, str | bytes | bytearray):
        return parse_json(value)
    if isinstance(value, Mapping):
        return {str(key): item for key, item in cast("Mapping[Any, Any]", value).items()}
    if callable(getattr(value, "model_dump", None)):
        return dump_model(value, by_alias=True, exclude_unset=True)
    reason = f"expected an SDK object, a dict or JSON text, got {describe_value(value)}"
    raise MessageError("reply", reason, "Pass the reply of the SDK.")


def dump_model(model: Any, **options: bool) -> Any:
    """Converts a pydantic model to a dict of JSON values. `options` are options of `model_dump`."""
    try:
        return model.model_dump(mode="json", warnings=False, **options)
    except ValueError:  # pydantic raises this error if a text has a lone surrogate
        return make_json_safe(model.model_dump(warnings=False, **options))


def reply_to_json(value: object) -> Any:
    """Converts a complete reply to JSON values (see `native_to_json`). Replaces lone surrogates with U+FFFD.

    Each replacement is logged with its place. JSON text that pydantic can parse has no lone surrogates, so the
    function does not search this text.
    """
    if isinstance(value, str | bytes | bytearray):
        try:
            return from_json(value, cache_strings="keys")
        except (ValueError, TypeError):
            pass
    return replace_surrogates(native_to_json(value), "reply")


def parse_json(text: str | bytes | bytearray) -> Any:
    """Parses JSON text.

    Raises:
        MessageError: The text is not JSON.

    """
    try:
        return from_json(text, cache_strings="keys")  # only keys are cached, because values rarely repeat
    except (ValueError, TypeError):  # the text may have lone surrogates, which pydantic-core refuses
        pass
    try:
        return json.loads(text)  # `json.loads` accepts lone surrogates, which some servers send
    except (ValueError, RecursionError) as error:
        raise MessageError("reply", f"invalid JSON ({error})", "Pass the complete JSON text.") from None


def as_object(value: object) -> dict[str, Any]:
    """Returns the value if it is a dict, else an empty dict."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType] - a cast takes time


def as_list(value: object) -> list[Any]:
    """Returns the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def find_value(fields: Mapping[str, Any], path: str) -> object:
    """Returns the value at a path of nested keys that are separated by dots. Returns None if there is no value.

    >>> find_value({"text": {"format": "json"}}, "text.format")
    'json'
    """
    value: object = fields
    for key in path.split("."):
        value = as_object(value).get(key)
    return value


def as_text(value: object, place: str = "") -> str:
    """Returns a string with U+FFFD instead of lone surrogates. Returns "" for a value that is not a string.

    Each replacement is logged with `place`.
    """
    if not isinstance(value, str):
        return ""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            text = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            # only lone surrogates became U+FFFD; a pair of surrogates became one ordinary character
            if text.count("\ufffd") > value.count("\ufffd"):
                _LOG.warning("%s: lone surrogates replaced with U+FFFD", place or "a text")
            return text
    return value


_LOG = get_logger()
_MAX_DEPTH = 200
"""Maximum number of nested levels in a JSON value. pydantic can parse about 250 levels."""


def make_json_safe(value: object, place: str = "", dump: Callable[[Any], object] | None = None) -> Any:
    """Converts any value to JSON values that can be serialized and parsed again.

    SDK objects become dicts, and bytes become base64 text. Lone surrogates become U+FFFD, and each replacement is
    logged with its path. NaN, infinity and integers of more than 1,024 bits become null. A list or dict inside 200
    other lists or dicts becomes one string with all its texts. An object of any other class becomes a short text
    with the name of the class.

    Args:
        value: Any value.
        place: First part of the path in log lines.
        dump: Function that converts the objects of a library, and returns any other object unchanged.
            `native_to_json` converts the SDK objects that `dump` returns unchanged. None means that
            `native_to_json` converts all SDK objects.

    """
    return _make_safe(value, 0, (None, place), dump)


def ensure_json_safe(value: object, place: str = "", dump: Callable[[Any], object] | None = None) -> Any:
    """Returns a value unchanged if JSON can represent all its parts. Otherwise, returns `make_json_safe(value)`.

    Unlike `make_json_safe`, this function does not copy most values, and is therefore faster. The result can be
    the value itself, so the caller must not change the result. See `make_json_safe` for the arguments.
    """
    return value if is_json_safe(value) else make_json_safe(value, place, dump)


def is_json_safe(value: object) -> bool:
    """Returns True if `make_json_safe` would return an equal value."""
    level: list[Any] = [value]
    keys: set[Any] = set()
    for _ in range(_MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            cls = item.__class__
            if cls is str:
                if not (item.isascii() or is_encodable(item)):
                    return False
            elif cls is dict:
                keys.update(item)
                inner += item.values()
            elif cls is list:
                inner += item
            elif cls is int:
                if item.bit_length() > _MAX_BITS:
                    return False
            elif item is not None and cls is not bool and not (cls is float and math.isfinite(item)):
                return False
        if not inner:
            return all(type(key) is str and is_encodable(key) for key in keys)
        level = inner
    return False


_Path: TypeAlias = "tuple[_Path | None, object]"


def _make_safe(value: object, depth: int, path: _Path, dump: Callable[[Any], object] | None) -> Any:
    if isinstance(value, str):
        return value if is_encodable(value) else as_text(value, _format_path(path))
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _MAX_BITS else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(cast("bytes", value)).decode("ascii")
    if depth >= _MAX_DEPTH:
        _LOG.warning(
            "%s: nested more than 200 levels deep; replaced by one string with all its texts", _format_path(path)
        )
        return " ".join(("(nested too deeply)", *_texts(value)))
    if isinstance(value, Mapping):
        safe: dict[str, Any] = {}
        for key, item in cast("Mapping[Any, Any]", value).items():
            name = key if type(key) is str and key.isascii() else as_text(str(key), _format_path(path))
            safe[name] = (
                item if type(item) is str and item.isascii() else _make_safe(item, depth + 1, (path, key), dump)
            )
        return safe
    if isinstance(value, list | tuple):
        items: list[Any] = []
        for index, item in enumerate(cast("Sequence[Any]", value)):
            items.append(_make_safe(item, depth + 1, (path, index), dump))
        return items
    dumped = value if dump is None else dump(value)
    if dumped is value:
        is_model = callable(getattr(value, "model_dump", None))
        dumped = native_to_json(value) if is_model else f"({type(value).__name__})"
    return _make_safe(dumped, depth + 1, path, dump)


_MAX_BITS = 1_024
"""Maximum number of bits in an integer. Larger integers become null, because they exceed the range of a float."""


def is_encodable(text: str) -> bool:
    """Returns True if UTF-8 can encode a text, which means that the text has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _format_path(path: _Path) -> str:
    """Formats a path as text, such as `messages[3].content[1]`. Omits the middle of a long path."""
    steps: list[str] = []
    before, step = path
    while before is not None:
        # only short identifiers are logged, because other keys may contain text of the conversation
        is_name = isinstance(step, str) and step.isidentifier() and len(step) < 40
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if is_name else "[…]")
        before, step = before
    steps.reverse()
    if len(steps) > _MAX_STEPS:
        steps[_MAX_STEPS // 2 : -_MAX_STEPS // 2] = ["…"]
    return f"{step}{''.join(steps)}".removeprefix(".")


_MAX_STEPS = 16


def _texts(value: object, read: Callable[[str], str] = as_text) -> Iterator[str]:
    pending, visited = [value], set[int]()
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield read(item)
        elif isinstance(item, Mapping | list | tuple) and id(cast("object", item)) not in visited:
            visited.add(id(cast("object", item)))
            inner: list[object] = []
            if isinstance(item, Mapping):
                for pair in cast("Mapping[object, object]", item).items():
                    inner += pair
            else:
                inner += cast("Sequence[object]", item)
            pending += reversed(inner)


def replace_surrogates(value: Any, place: str) -> Any:
    """Returns a value with U+FFFD instead of lone surrogates in its strings. Each replacement is logged.

    Strings in SDK objects, and strings that are nested more than 200 levels deep, are not changed. `place` is the
    first part of the path in log lines.
    """
    try:
        to_json(value)  # the fastest test for lone surrogates
    except ValueError:  # the value contains a lone surrogate, or a value that JSON cannot represent
        return value if all(map(is_encodable, _texts(value, str))) else _replace_nested(value, 0, (None, place))
    return value


def _replace_nested(value: Any, depth: int, path: _Path) -> Any:
    if isinstance(value, str):
        return as_text(value, _format_path(path))
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {
            _replace_nested(key, depth, path): _replace_nested(item, depth + 1, (path, key)) for key, item in pairs
        }
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        items = enumerate(cast("Sequence[Any]", value))
        return [_replace_nested(item, depth + 1, (path, index)) for index, item in items]
    return value


def get_set_fields(value: object, always: Collection[str] = ()) -> dict[str, Any] | None:
    """Returns the fields of a pydantic model that were set explicitly. Returns None for any other value.

    Unlike `model_dump`, this function does not run the serializers of the model. The result also has the fields
    named in `always` that were not set.
    """
    set_fields: Any = getattr(value, "model_fields_set", None)
    if not isinstance(set_fields, set):
        return None
    names = [str(name) for name in cast("Any", type(value)).model_fields if name in set_fields or name in always]
    return {name: getattr(value, name) for name in names}


def copy_json(item: Any) -> Any:
    """Returns a deep copy of a JSON value."""
    if isinstance(item, dict):
        copied = cast("dict[str, Any]", item).copy()
        for key, inner in copied.items():
            if type(inner) in _CONTAINERS:
                copied[key] = copy_json(inner)
        return copied
    if isinstance(item, list):
        return [copy_json(inner) if type(inner) in _CONTAINERS else inner for inner in cast("list[Any]", item)]
    return item


def read_arguments(value: object) -> tuple[dict[str, Any], str | None]:
    """Reads the arguments of a logged tool call. Returns the arguments as a dict, and their text or None.

    For an object, returns the object and None. For the JSON text of an object, returns the object and the text.
    For any other text, returns `{}` and the text. For None and for an empty text, returns `{}` and None, because
    the call has no arguments. For any other value, returns `{}` and the JSON text of the value.
    """
    if isinstance(value, dict):
        return cast("dict[str, Any]", value), None
    if value is None:
        return {}, None
    text = as_text(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return parse_arguments(text) or {}, text or None


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Parses the argument text of a tool call as a JSON object. Returns None if the text is not a JSON object."""
    try:
        parsed: object = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):
        if not _SURROGATE.search(text):
            return None
        parsed = _parse_without_surrogates(text)
    return parsed if isinstance(parsed, dict) else None  # pyright: ignore[reportUnknownVariableType]


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""Pattern that matches a surrogate, as a character or as a JSON escape."""


def _parse_without_surrogates(text: str) -> object:
    """Parses JSON text and replaces lone surrogates with U+FFFD. Returns None if the text is not JSON."""
    try:  # with `parse_constant=int`, NaN and infinity raise ValueError
        return make_json_safe(json.loads(text, parse_constant=int), "arguments")
    except (ValueError, RecursionError):
        return None


_CONTAINERS = {dict, list}
