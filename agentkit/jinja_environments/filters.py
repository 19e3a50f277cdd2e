"""Filters `yaml` and `json` of prompts, and the filter `tojson` of chat templates.

The filters of prompts can exclude fields of dicts. A `TemplateRecord` is a dict that also stores the names of the
fields that have their default value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, cast

from agentkit.jinja_environments.functions import check_printable, raise_error
from agentkit.jinja_environments.yaml_texts import dump_yaml
from agentkit.reprs import describe_value

__all__ = ["TemplateRecord", "write_chat_json", "write_json", "write_yaml"]

_MAX_CACHED: Final = 50_000  # maximum length of a cached JSON text, in characters


class TemplateRecord(dict[str, Any]):
    """Dict of the fields of a pydantic model or a dataclass.

    The object also stores the names of the fields that have their default value. The filters `yaml` and `json`
    omit these fields if `exclude_defaults` is True.
    """

    __slots__ = ("_defaults",)

    def __init__(self, fields: Mapping[str, Any], defaults: Iterable[str] = ()) -> None:
        super().__init__(fields)
        self._defaults = frozenset(defaults)

    @staticmethod
    def get_defaults(fields: Mapping[str, Any]) -> frozenset[str]:
        """Returns the names of the fields whose value is the default. Returns no names for a plain dict."""
        return fields._defaults if isinstance(fields, TemplateRecord) else frozenset()


def write_yaml(
    value: object,
    exclude_defaults: bool = False,
    exclude_none: bool = False,
    exclude_fields: str | Sequence[str] = (),
) -> str:
    """Returns a value as YAML text, without the excluded fields. This is the filter `yaml`.

    Args:
        value: JSON value.
        exclude_defaults: True to exclude the fields of a `TemplateRecord` that have their default value.
        exclude_none: True to exclude fields with the value None.
        exclude_fields: Name or names of fields of `value` to exclude.
    """
    return dump_yaml(_select_fields(_exclude_fields(value, exclude_fields), exclude_defaults, exclude_none))


def write_json(
    value: object,
    exclude_defaults: bool = False,
    exclude_none: bool = False,
    exclude_fields: str | Sequence[str] = (),
    indent: int | None = None,
) -> str:
    """Returns a value as JSON text, without the excluded fields. This is the filter `json`.

    Args:
        value: JSON value.
        exclude_defaults: True to exclude the fields of a `TemplateRecord` that have their default value.
        exclude_none: True to exclude fields with the value None.
        exclude_fields: Name or names of fields of `value` to exclude.
        indent: Number of spaces for each level. None writes the text in one line.
    """
    selected = _select_fields(_exclude_fields(value, exclude_fields), exclude_defaults, exclude_none)
    return json.dumps(selected, ensure_ascii=False, indent=indent)


def write_chat_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Returns a value as JSON text. This is the filter `tojson` of chat templates."""
    encoder = _get_encoder(ensure_ascii, indent, tuple(separators) if separators else None, sort_keys)
    if indent is None or sort_keys:
        return encoder.encode(value)
    # Python writes indented JSON slowly, and many templates write the same tools each time. So the text is cached.
    compact = _get_encoder(False, None, None, False).encode(value)
    if len(compact) > _MAX_CACHED:
        return encoder.encode(value)
    texts = _get_indented(compact, encoder)
    if texts:
        return texts[0]
    text = encoder.encode(value)
    if len(text) <= _MAX_CACHED:
        texts.append(text)
    return text


@lru_cache(64)
def _get_indented(compact: str, encoder: json.JSONEncoder) -> list[str]:
    """Returns the cache entry of a value: an empty list at first, to which the caller adds the indented text."""
    return []


@lru_cache(16)
def _get_encoder(
    ensure_ascii: bool, indent: int | str | None, separators: tuple[str, ...] | None, sort_keys: bool
) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=ensure_ascii, indent=indent, separators=cast("Any", separators), sort_keys=sort_keys
    )


def _exclude_fields(value: object, names: str | Sequence[str]) -> object:
    """Returns a dict without the fields `names`. A name that the dict does not have is an error."""
    excluded = [names] if isinstance(names, str) else list(names)
    if not excluded:
        return value
    if not isinstance(value, dict):
        raise_error(f"exclude_fields: expected a dict with fields, got {describe_value(value)}")
    fields = cast("dict[str, Any]", value)
    unknown = [name for name in excluded if name not in fields]
    if unknown:
        raise_error(f"exclude_fields: there is no field {unknown[0]!r}")
    remaining = {name: item for name, item in fields.items() if name not in excluded}
    return TemplateRecord(remaining, TemplateRecord.get_defaults(fields))


def _select_fields(value: object, exclude_defaults: bool, exclude_none: bool) -> Any:
    """Returns a copy of a value without the fields to exclude. The copy has only dicts, lists and scalars."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        excluded = TemplateRecord.get_defaults(fields) if exclude_defaults else ()
        return {
            name: _select_fields(item, exclude_defaults, exclude_none)
            for name, item in fields.items()
            if name not in excluded and not (exclude_none and item is None)
        }
    if isinstance(value, list | tuple | Iterator):
        items = cast("Iterable[object]", value)
        return [_select_fields(item, exclude_defaults, exclude_none) for item in items]
    check_printable(value)
    return str(value)  # only an undefined value gets here, and its `str` raises jinja's error
