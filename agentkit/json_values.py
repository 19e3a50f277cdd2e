"""A provider's own values as plain JSON values: SDK objects, dicts, raw bytes of a stream."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from pydantic_core import from_json, to_json

from agentkit.errors import MessageError
from agentkit.loggers import get_logger

__all__ = [
    "as_list",
    "as_object",
    "as_text",
    "copy_json",
    "is_encodable",
    "make_json_safe",
    "native_to_json",
    "parse_arguments",
    "parse_json",
    "read_arguments",
    "reply_to_json",
]


def native_to_json(found: object) -> Any:
    """A reply, or an event of a stream, as JSON values: from the SDK's object, its dict, or JSON text.

    The objects of all SDKs are pydantic models or dicts; nothing of an SDK is imported to read them. Raises
    MessageError for what is neither.
    """
    if type(found) is dict:
        return cast("dict[str, Any]", found)
    if isinstance(found, str | bytes | bytearray):
        return parse_json(found)
    if isinstance(found, Mapping):
        return {str(key): item for key, item in cast("Mapping[Any, Any]", found).items()}
    dump = getattr(found, "model_dump", None)
    if callable(dump):
        try:
            return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
        except ValueError:  # a lone surrogate
            return make_json_safe(dump(by_alias=True, exclude_unset=True, warnings=False))
    reason = f"a {type(found).__name__} is no reply"
    raise MessageError("reply", reason, "Give the SDK's object, its dict, or the JSON text.")


def reply_to_json(found: object) -> Any:
    """A whole reply as `plain` reads it; lone surrogates become U+FFFD, which is logged with the place.

    A text that pydantic parses has no lone surrogate, so most replies are not searched for one.
    """
    if isinstance(found, str | bytes | bytearray):
        try:
            return from_json(found, cache_strings="keys")
        except (ValueError, TypeError):
            pass
    return replace_surrogates(native_to_json(found), "reply")


def parse_json(text: str | bytes | bytearray) -> Any:
    """JSON text as its value. Raises MessageError for what is none."""
    try:
        return from_json(text, cache_strings="keys")  # texts do not come twice
    except (ValueError, TypeError):  # a text with a lone surrogate is no text to it
        pass
    try:
        return json.loads(text)  # takes the halves of a surrogate pair, which some servers write
    except (ValueError, RecursionError) as error:
        raise MessageError("reply", f"this is not JSON ({error})", "Mend the JSON.") from None


def as_object(found: object) -> dict[str, Any]:
    """An object of the wire; an empty one for anything else."""
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - no cast: it costs


def as_list(found: object) -> list[Any]:
    """A list of the wire; an empty one for anything else."""
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def as_text(found: object, place: str = "") -> str:
    """A string of the wire that UTF-8 can carry; an empty one for anything else.

    Lone surrogates become U+FFFD, which is logged with the place.
    """
    if not isinstance(found, str):
        return ""
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            whole = found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            if whole.count("\ufffd") > found.count("\ufffd"):  # else the halves of a pair found each other
                _LOG.warning("%s: lone surrogates replaced by U+FFFD", place or "a text")
            return whole
    return found


_LOG = get_logger()
_DEEPEST = 200
"""Levels of nesting: pydantic reads some 250."""


def make_json_safe(found: object, place: str = "", dump: Callable[[Any], object] | None = None) -> Any:
    """Any value as JSON values that can be written and read again, whatever is in it.

    SDK objects inside are read as `plain` reads them, or first by `dump`, which returns what it does not know
    unchanged; bytes become base64 text. What JSON cannot say is replaced: a lone surrogate by U+FFFD (logged with
    its path, which begins with `place`), NaN and the infinities by null, what is nested too deeply by the texts in
    it, what is no JSON value by a short text.
    """
    return _plain(found, 0, (None, place), dump)


_Path: TypeAlias = "tuple[_Path | None, object]"


def _plain(found: object, depth: int, path: _Path, dump: Callable[[Any], object] | None) -> Any:
    if isinstance(found, str):
        return found if is_encodable(found) else as_text(found, _spelled(path))
    if found is None or isinstance(found, bool):
        return found
    if isinstance(found, int):
        return int(found) if found.bit_length() <= _LONGEST else None
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, bytes | bytearray | memoryview):
        return base64.b64encode(cast("bytes", found)).decode("ascii")
    if depth >= _DEEPEST:
        _LOG.warning("%s: nested too deeply, only its texts are kept", _spelled(path))
        return " ".join(("(nested too deeply)", *_texts(found)))
    if isinstance(found, Mapping):
        held: dict[str, Any] = {}
        for key, item in cast("Mapping[Any, Any]", found).items():
            name = key if type(key) is str and key.isascii() else as_text(str(key), _spelled(path))
            held[name] = (
                item if type(item) is str and item.isascii() else _plain(item, depth + 1, (path, key), dump)
            )
        return held
    if isinstance(found, list | tuple):
        items: list[Any] = []
        for at, item in enumerate(cast("Sequence[Any]", found)):
            items.append(_plain(item, depth + 1, (path, at), dump))
        return items
    opened = found if dump is None else dump(found)
    if opened is found:
        opened = (
            native_to_json(found) if callable(getattr(found, "model_dump", None)) else f"({type(found).__name__})"
        )
    return _plain(opened, depth + 1, path, dump)


_LONGEST = 1_024
"""Bits of a whole number: what a float can reach."""


def is_encodable(text: str) -> bool:
    """Returns True if UTF-8 can carry a text: it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spelled(path: _Path) -> str:
    """A path as text: `messages[3].content[1]`; of a long one the beginning and the end."""
    steps: list[str] = []
    before, step = path
    while before is not None:
        named = isinstance(step, str) and step.isidentifier() and len(step) < 40  # any other key may be content
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if named else "[…]")
        before, step = before
    steps.reverse()
    if len(steps) > _MOST_STEPS:
        steps[_MOST_STEPS // 2 : -_MOST_STEPS // 2] = ["…"]
    return f"{step}{''.join(steps)}".removeprefix(".")


_MOST_STEPS = 16


def _texts(found: object, read: Callable[[str], str] = as_text) -> Iterator[str]:
    """The texts in a value of any depth, keys included, in order."""
    waiting, known = [found], set[int]()
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield read(item)
        elif isinstance(item, Mapping | list | tuple) and id(cast("object", item)) not in known:
            known.add(id(cast("object", item)))
            inner: list[object] = []
            if isinstance(item, Mapping):
                for pair in cast("Mapping[object, object]", item).items():
                    inner += pair
            else:
                inner += cast("Sequence[object]", item)
            waiting += reversed(inner)


def replace_surrogates(found: Any, place: str) -> Any:
    """The value, its lone surrogates replaced by U+FFFD, which is logged; the same value if it has none.

    Objects in it, and what is nested too deeply, stay as they are.
    """
    try:
        to_json(found)  # the fastest search
    except ValueError:  # a lone surrogate, or a value that JSON cannot say
        return found if all(map(is_encodable, _texts(found, str))) else _replaced(found, 0, (None, place))
    return found


def _replaced(found: Any, depth: int, path: _Path) -> Any:
    if isinstance(found, str):
        return as_text(found, _spelled(path))
    if depth < _DEEPEST and isinstance(found, Mapping):
        pairs = cast("Mapping[Any, Any]", found).items()
        return {_replaced(key, depth, path): _replaced(item, depth + 1, (path, key)) for key, item in pairs}
    if depth < _DEEPEST and isinstance(found, list | tuple):
        items = enumerate(cast("Sequence[Any]", found))
        return [_replaced(item, depth + 1, (path, at)) for at, item in items]
    return found


def copy_json(item: Any) -> Any:
    """A fresh copy of a JSON value: containers are new, leaves shared."""
    if isinstance(item, dict):
        fresh = cast("dict[str, Any]", item).copy()
        for key, inner in fresh.items():
            if type(inner) in _CONTAINERS:
                fresh[key] = copy_json(inner)
        return fresh
    if isinstance(item, list):
        return [copy_json(inner) if type(inner) in _CONTAINERS else inner for inner in cast("list[Any]", item)]
    return item


def read_arguments(found: object) -> tuple[dict[str, Any], str | None]:
    """Returns the arguments of a call in a log, and their text where they are no object.

    Text that is no JSON object, and any other value as its JSON text, stay beside `{}`. None is no arguments.
    """
    if isinstance(found, dict):
        return cast("dict[str, Any]", found), None
    if found is None:
        return {}, None
    text = as_text(found) if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return parse_arguments(text) or {}, text or None


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Argument text as an object; None when it is none."""
    from pydantic_core import from_json

    try:
        parsed: object = from_json(text, allow_inf_nan=False)
    except (ValueError, TypeError):
        if not _SURROGATE.search(text):
            return None
        parsed = _without_surrogates(text)
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
"""A surrogate, written out or as an escape of JSON."""


def _without_surrogates(text: str) -> object:
    """The value of JSON text, its lone surrogates replaced; None if it is no JSON."""
    try:  # int refuses NaN and the infinities
        return make_json_safe(json.loads(text, parse_constant=int), "arguments")
    except (ValueError, RecursionError):
        return None


_CONTAINERS = {dict, list}
