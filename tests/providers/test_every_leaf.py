"""Every text of a rich log of any wire is in the request for any other, or the ledger names where it stayed."""

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
from tests.logs.rich_logs import RICH_LOGS
from tests.providers import PROVIDERS, chat, multi_agent

_WORDS: Final = frozenset({"type", "role", "mimeType", "media_type", "language", "outcome", "status", "id"})
"""Keys whose values are words of the wire or its own ids, which another wire says in its own."""

_STRUCTURE: Final = frozenset({"messages", "input", "contents", "content", "parts", "text", "output", "data"})
"""Keys by which no entry of a ledger could be known."""

_NAMED_AS: Final = {
    "displayName": "display_name",
    "filename": "title",
    "annotations": "citations",
    "thoughtSignature": "signature",
}


def _leaves(found: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each text of a log with the keys that lead to it."""
    if isinstance(found, dict):
        for key, item in cast("dict[str, Any]", found).items():
            if key not in _WORDS or not isinstance(item, str):
                yield from _leaves(item, (*path, key))
    elif isinstance(found, list):
        for item in cast("list[Any]", found):
            yield from _leaves(item, path)
    elif isinstance(found, str):
        yield from _texts(path, found)


def _texts(path: tuple[str, ...], found: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """A text as what it says: the values of argument text, the data of a URL that holds them."""
    if path[-1] == "arguments":
        yield from _leaves(json.loads(found), path)
    else:
        yield path, found.partition(";base64,")[2] or found


def _said_in(leaf: str, found: object) -> bool:
    """Whether JSON values say a text, by itself or in the midst of another."""
    if isinstance(found, dict):
        return any(_said_in(leaf, item) for item in cast("dict[str, Any]", found).values())
    if isinstance(found, list):
        return any(_said_in(leaf, item) for item in cast("list[Any]", found))
    return isinstance(found, str) and any(way in found for way in _ways(leaf))


@cache
def _ways(leaf: str) -> tuple[str, ...]:
    """A text, the base64 text of it, and the text that it is the base64 text of."""
    encoded = base64.b64encode(leaf.encode()).decode("ascii")
    try:
        decoded = base64.b64decode(leaf, validate=True).decode()
    except ValueError:
        decoded = ""
    return (leaf, encoded, decoded) if decoded.isprintable() and decoded else (leaf, encoded)


def _homes(leaf: str, msgs: list[Msg]) -> list[str]:
    """The places of the blocks that hold a text, or whose speaker's name it is; of items of results, these."""
    return [
        place
        for at, msg in enumerate(msgs)
        for place, held in _held(f"msgs[{at}]", msg)
        if _said_in(leaf, held) or msg.name == leaf
    ]


def _held(place: str, msg: Msg) -> Iterator[tuple[str, Any]]:
    """Each block of a message with its place, as JSON values; the items of a result by themselves."""
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


def _names(entry: LedgerEntry, path: tuple[str, ...], leaf: str) -> bool:
    """Whether an entry says that its block stayed away, or that this text of it did."""
    if entry.disposition.word in ("dropped", "described"):
        return True
    told = " ".join((entry.reason, *entry.details))
    keys = {_NAMED_AS.get(key, _snake(key)) for key in path} - _STRUCTURE
    return leaf in told or bool(keys & {*re.findall(r"\w+", told)})


def _snake(key: str) -> str:
    return re.sub("([A-Z])", lambda found: f"_{found[0].lower()}", key)


def _plan(source: str, target: str, *, multi: bool) -> tuple[list[Msg], Plan]:
    msgs = load_native(source, RICH_LOGS[source])
    return msgs, asyncio.run((multi_agent if multi else chat)(target).plan(msgs))


@pytest.mark.parametrize("source", PROVIDERS)
def test_every_text_of_a_log_is_loaded(source: str) -> None:
    stored = [msg.to_dict() for msg in load_native(source, RICH_LOGS[source])]
    assert [leaf for _, leaf in _leaves(RICH_LOGS[source]) if not _said_in(leaf, stored)] == []


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("target", PROVIDERS)
@pytest.mark.parametrize("source", PROVIDERS)
def test_every_text_of_a_log_is_in_the_request_or_named_by_the_ledger(
    source: str, target: str, multi: bool
) -> None:
    msgs, plan = _plan(source, target, multi=multi)
    entries = {entry.place: entry for entry in plan.ledger.entries}
    sent = [plan.request, *plan.call_ids.values(), *plan.tool_names.values()]  # the plan maps what is rewritten
    silent = [
        (path, leaf)
        for path, leaf in _leaves(RICH_LOGS[source])
        if not _said_in(leaf, sent) and not any(_names(entries[place], path, leaf) for place in _homes(leaf, msgs))
    ]
    assert silent == []
