"""Generated histories, equal in every run, as slotted dataclasses (for the floor) and as messages of agentkit."""

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
    text: str


@dataclass(slots=True)
class PlainCall:
    """Tool call with its arguments as an object (`input`) and as JSON text (`arguments`)."""

    id: str
    name: str
    input: dict[str, Any]
    arguments: str


@dataclass(slots=True)
class PlainResult:
    id: str
    name: str
    output: str


Content: TypeAlias = str | list[PlainText | PlainCall | PlainResult]


@dataclass(slots=True)
class PlainMsg:
    name: str
    content: Content
    role: Role


_WORDS = (
    "the library opens at nine and the report on rainfall in spring was moved to another shelf because "
    "nobody had asked for it since the winter so we looked through the index found three copies and a map"
)
_TOOLS = ("search", "read_file", "get_weather", "run_query", "list_folder")
_SPEAKERS = ("Alice", "Bob", "Carol", "Dave", "Friday")


def _build_text(random: Random, low: int, high: int) -> str:
    """Returns random words as a new string."""
    return " ".join(random.choices(_WORDS.split(), k=random.randint(low, high))).capitalize() + "."


def _build_call(random: Random, number: int) -> PlainCall:
    arguments: dict[str, Any] = {"query": _build_text(random, 3, 8), "limit": random.randint(1, 50)}
    if number % 3 == 0:
        arguments["options"] = {"exact": True, "fields": ["title", "place"], "offset": number}
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return PlainCall(f"call_{random.getrandbits(96):024x}", random.choice(_TOOLS), arguments, text)


def _build_step(random: Random, number: int) -> Iterator[PlainMsg]:
    """Yields a message with one to three tool calls and sometimes a text, and a message with the results."""
    calls = [_build_call(random, number + at) for at in range(random.choice((1, 1, 1, 1, 1, 1, 1, 2, 2, 3)))]
    texts = [PlainText(_build_text(random, 5, 20))] if number % 3 == 0 else []
    yield PlainMsg("Friday", [*texts, *calls], "assistant")
    yield PlainMsg("system", [PlainResult(c.id, c.name, _build_text(random, 10, 80)) for c in calls], "system")


def _build_opening(random: Random) -> list[PlainMsg]:
    prompt, task = _build_text(random, 60, 60), _build_text(random, 20, 20)
    return [PlainMsg("system", prompt, "system"), PlainMsg("Alice", task, "user")]


def build_react_loop(n: int) -> list[PlainMsg]:
    """Returns a ReAct loop of `n` messages: a system prompt, a task, then tool calls and their results."""
    random = Random(n)
    msgs = _build_opening(random)
    while len(msgs) < n - 1:
        msgs.extend(_build_step(random, len(msgs)))
    if len(msgs) < n:
        msgs.append(PlainMsg("Friday", _build_text(random, 10, 40), "assistant"))
    return msgs[:n]


def build_mixed_chat(n: int) -> list[PlainMsg]:
    """Returns a chat of a user and an agent with `n` messages. Every fifth message has tool calls or results."""
    random = Random(n)
    msgs = _build_opening(random)
    while len(msgs) < n:
        at = len(msgs)
        if at % 10 == 8 and at + 2 <= n:
            msgs.extend(_build_step(random, at))
            continue
        name, role = ("Friday", "assistant") if at % 2 == 0 else ("Alice", "user")
        text = _build_text(random, 10, 60)
        msgs.append(PlainMsg(name, [PlainText(text)] if at % 4 == 2 else text, role))  # type: ignore[arg-type]
    return msgs


def build_group_chat(n: int) -> list[PlainMsg]:
    """Returns a chat of five speakers with `n` messages, with a system prompt and without tools."""
    random = Random(n)
    msgs = _build_opening(random)[:1]
    while len(msgs) < n:
        name = random.choice(_SPEAKERS)
        text = _build_text(random, 10, 60)
        role: Role = "assistant" if name == "Friday" else "user"
        msgs.append(PlainMsg(name, [PlainText(text)] if len(msgs) % 4 == 2 else text, role))
    return msgs


MIXES: dict[str, Callable[[int], list[PlainMsg]]] = {
    "mixed": build_mixed_chat,
    "react": build_react_loop,
    "group": build_group_chat,
}


def copy_plain(msgs: Sequence[PlainMsg]) -> list[PlainMsg]:
    """Returns a copy of a history in new objects, which share the texts and arguments."""
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
    """Returns a history as new messages of agentkit, with empty caches."""
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
