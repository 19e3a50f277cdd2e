"""Histories, the same in every run: as slotted dataclasses for the floor, and as agentkit's messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias

from agentkit import Msg, TextBlock, ToolResultBlock, ToolUseBlock

__all__ = [
    "MIXES",
    "PlainCall",
    "PlainMsg",
    "PlainResult",
    "PlainText",
    "as_msgs",
    "copy_plain",
    "build_group_chat",
    "build_mixed_chat",
    "build_react_loop",
]

Role: TypeAlias = Literal["user", "assistant", "system"]


@dataclass(slots=True)
class PlainText:
    """A text."""

    text: str


@dataclass(slots=True)
class PlainCall:
    """A call, its argument text beside the arguments."""

    id: str
    name: str
    input: dict[str, Any]
    arguments: str


@dataclass(slots=True)
class PlainResult:
    """A result."""

    id: str
    name: str
    output: str


Content: TypeAlias = str | list[PlainText | PlainCall | PlainResult]


@dataclass(slots=True)
class PlainMsg:
    """A message."""

    name: str
    content: Content
    role: Role


_TALK = (
    "the library opens at nine and the report on rainfall in spring was moved to another shelf because "
    "nobody had asked for it since the winter so we looked through the index found three copies and a map"
)
_TOOLS = ("search", "read_file", "get_weather", "run_query", "list_folder")
_SPEAKERS = ("Alice", "Bob", "Carol", "Dave", "Friday")


def _text(random: Random, low: int, high: int) -> str:
    """Some words, as a string that no other message shares."""
    return " ".join(random.choices(_TALK.split(), k=random.randint(low, high))).capitalize() + "."


def _call(random: Random, number: int) -> PlainCall:
    arguments: dict[str, Any] = {"query": _text(random, 3, 8), "limit": random.randint(1, 50)}
    if number % 3 == 0:
        arguments["options"] = {"exact": True, "fields": ["title", "place"], "offset": number}
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return PlainCall(f"call_{random.getrandbits(96):024x}", random.choice(_TOOLS), arguments, text)


def _step(random: Random, number: int) -> Iterator[PlainMsg]:
    """A turn of one to three parallel calls, with a text before it in one of three, and all its results."""
    calls = [_call(random, number + at) for at in range(random.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 3)))]
    said = [PlainText(_text(random, 5, 20))] if number % 3 == 0 else []
    yield PlainMsg("Friday", [*said, *calls], "assistant")
    yield PlainMsg("system", [PlainResult(c.id, c.name, _text(random, 10, 80)) for c in calls], "system")


def _opening(random: Random) -> list[PlainMsg]:
    prompt, task = _text(random, 60, 60), _text(random, 20, 20)
    return [PlainMsg("system", prompt, "system"), PlainMsg("Alice", task, "user")]


def build_react_loop(n: int) -> list[PlainMsg]:
    """A system prompt and a task, then call and result steps to the end."""
    random = Random(n)
    msgs = _opening(random)
    while len(msgs) < n - 1:
        msgs.extend(_step(random, len(msgs)))
    if len(msgs) < n:
        msgs.append(PlainMsg("Friday", _text(random, 10, 40), "assistant"))
    return msgs[:n]


def build_mixed_chat(n: int) -> list[PlainMsg]:
    """Talk of two, one in five messages part of a tool step: about the mix of a group chat with tools."""
    random = Random(n)
    msgs = _opening(random)
    while len(msgs) < n:
        at = len(msgs)
        if at % 10 == 8 and at + 2 <= n:
            msgs.extend(_step(random, at))
            continue
        name, role = ("Friday", "assistant") if at % 2 == 0 else ("Alice", "user")
        text = _text(random, 10, 60)
        msgs.append(PlainMsg(name, [PlainText(text)] if at % 4 == 2 else text, role))  # type: ignore[arg-type]
    return msgs


def build_group_chat(n: int) -> list[PlainMsg]:
    """Talk of five under a system prompt, no tools."""
    random = Random(n)
    msgs = _opening(random)[:1]
    while len(msgs) < n:
        name = random.choice(_SPEAKERS)
        text = _text(random, 10, 60)
        role: Role = "assistant" if name == "Friday" else "user"
        msgs.append(PlainMsg(name, [PlainText(text)] if len(msgs) % 4 == 2 else text, role))
    return msgs


MIXES: dict[str, Callable[[int], list[PlainMsg]]] = {
    "mixed": build_mixed_chat,
    "react": build_react_loop,
    "group": build_group_chat,
}


def copy_plain(msgs: Sequence[PlainMsg]) -> list[PlainMsg]:
    """The same history in fresh objects; texts and arguments are shared."""
    return [PlainMsg(msg.name, _copy_content(msg.content), msg.role) for msg in msgs]


def _copy_content(content: Content) -> Content:
    return content if isinstance(content, str) else [_copy_block(block) for block in content]


def _copy_block(block: PlainText | PlainCall | PlainResult) -> PlainText | PlainCall | PlainResult:
    if isinstance(block, PlainText):
        return PlainText(block.text)
    if isinstance(block, PlainCall):
        return PlainCall(block.id, block.name, block.input, block.arguments)
    return PlainResult(block.id, block.name, block.output)


def as_msgs(msgs: Sequence[PlainMsg]) -> list[Msg]:
    """The same history as agentkit's messages, fresh: nothing about them has been worked out yet."""
    return [
        Msg(m.name, m.content if isinstance(m.content, str) else tuple(map(_as_block, m.content)), m.role)
        for m in msgs
    ]


def _as_block(block: PlainText | PlainCall | PlainResult) -> TextBlock | ToolUseBlock | ToolResultBlock:
    if isinstance(block, PlainText):
        return TextBlock(block.text)
    if isinstance(block, PlainCall):
        return ToolUseBlock(block.id, block.name, block.input)
    return ToolResultBlock(block.id, block.name, block.output)
