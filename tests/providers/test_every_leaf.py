"""Every text of a rich log of any API is in the request for any other API, or the ledger lists its loss."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, cast

import pytest

from agentkit import LedgerEntry, Msg, Plan, load_native
from tests.cases import each_case
from tests.logs.rich_logs import RICH_LOGS
from tests.providers import PROVIDERS, chat, multi_agent

_WORDS: Final = frozenset({"type", "role", "mimeType", "media_type", "language", "outcome", "status", "id"})
"""Keys whose values are constants or ids of one API, for which another API has different values."""

_STRUCTURE: Final = frozenset({"messages", "input", "contents", "content", "parts", "text", "output", "data"})
"""Keys that are too general to identify an entry of a ledger."""

_NAMED_AS: Final = {
    "displayName": "display_name",
    "filename": "title",
    "annotations": "citations",
    "thoughtSignature": "signature",
}


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields each text of a log with its path of keys."""
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            if key not in _WORDS or not isinstance(item, str):
                yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _leaves(item, path)
    elif isinstance(value, str):
        yield from _texts(path, value)


def _texts(path: tuple[str, ...], text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields the texts within a text: the values of JSON arguments, or the data of a data URL."""
    if path[-1] == "arguments":
        yield from _leaves(json.loads(text), path)
    else:
        yield path, text.partition(";base64,")[2] or text


def _list_texts(value: object) -> list[str]:
    """Returns each text of a JSON value, without the keys of objects."""
    if isinstance(value, dict):
        return [text for item in cast("dict[str, Any]", value).values() for text in _list_texts(item)]
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in _list_texts(item)]
    return [value] if isinstance(value, str) else []


def _contains(leaf: str, texts: list[str]) -> bool:
    """Returns True if a text is one of several, or a part of one."""
    return any(way in text for way in _encodings(leaf) for text in texts)


@cache
def _encodings(leaf: str) -> tuple[str, ...]:
    """Returns a text, its base64 encoding, and the text that it decodes to, if any."""
    encoded = base64.b64encode(leaf.encode()).decode("ascii")
    try:
        decoded = base64.b64decode(leaf, validate=True).decode()
    except ValueError:
        decoded = ""
    return (leaf, encoded, decoded) if decoded.isprintable() and decoded else (leaf, encoded)


@cache
def _load_log(source: str) -> tuple[list[Msg], list[tuple[str, str, list[str]]]]:
    """Returns the messages of a log, and the place, speaker name and texts of each block and result item."""
    msgs = load_native(source, RICH_LOGS[source])
    blocks = [
        (place, msg.name, _list_texts(values))
        for index, msg in enumerate(msgs)
        for place, values in _list_values(f"msgs[{index}]", msg)
    ]
    return msgs, blocks


def _find_places(leaf: str, source: str) -> list[str]:
    """Returns the places of the blocks and result items that contain a text or have it as the speaker name."""
    return [place for place, name, texts in _load_log(source)[1] if _contains(leaf, texts) or name == leaf]


def _list_values(place: str, msg: Msg) -> Iterator[tuple[str, Any]]:
    """Yields each block of a message and each item of a result, as JSON values with their places."""
    content: Any = msg.to_dict()["content"]
    if isinstance(content, str):
        yield f"{place}.content[0]", content
        return
    for number, block in enumerate(cast("list[dict[str, Any]]", content)):
        yield f"{place}.content[{number}]", {key: item for key, item in block.items() if key != "output"}
        output: Any = block.get("output")
        if isinstance(output, list):
            items = cast("list[Any]", output)
            yield from ((f"{place}.content[{number}].output[{k}]", item) for k, item in enumerate(items))
        else:
            yield f"{place}.content[{number}]", output


def _records_loss(entry: LedgerEntry, path: tuple[str, ...], leaf: str) -> bool:
    """Returns True if an entry records that its block, or this text of the block, is not in the request."""
    if entry.disposition.word in ("dropped", "described"):
        return True
    recorded = " ".join((entry.reason, *entry.details))
    keys = {_NAMED_AS.get(key, _to_snake_case(key)) for key in path} - _STRUCTURE
    return leaf in recorded or bool(keys & {*re.findall(r"\w+", recorded)})


def _to_snake_case(key: str) -> str:
    return re.sub("([A-Z])", lambda match: f"_{match[0].lower()}", key)


def _convert_log(source: str, target: str, *, multi: bool) -> Plan:
    return asyncio.run((multi_agent if multi else chat)(target).plan(_load_log(source)[0]))


@each_case("source", PROVIDERS)
def test_every_text_of_a_log_is_loaded(source: str) -> None:
    stored = _list_texts([msg.to_dict() for msg in load_native(source, RICH_LOGS[source])])
    assert [leaf for _, leaf in _leaves(RICH_LOGS[source]) if not _contains(leaf, stored)] == []


@each_case("multi", [False, True])
@each_case("target", PROVIDERS)
@pytest.mark.parametrize("source", PROVIDERS)
def test_every_text_of_a_log_is_in_the_request_or_named_by_the_ledger(
    source: str, target: str, multi: bool
) -> None:
    plan = _convert_log(source, target, multi=multi)
    entries = {entry.place: entry for entry in plan.ledger.entries}
    # The plan maps rewritten names.
    sent = _list_texts([plan.request, *plan.call_ids.values(), *plan.tool_names.values()])
    silent = [
        (path, leaf)
        for path, leaf in _leaves(RICH_LOGS[source])
        if not _contains(leaf, sent)
        and not any(_records_loss(entries[place], path, leaf) for place in _find_places(leaf, source))
    ]
    assert silent == []
