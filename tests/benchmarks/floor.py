"""The floor: hand-written loops that convert slotted dataclasses, without validation, repair or ledger.

Each loop has two variants. For OpenAI, `dump=True` encodes the arguments with `json.dumps`, and `dump=False` uses
their stored JSON text, as agentkit does. For Anthropic, whose API takes an object, `dump=True` shares the object
with the input, and `dump=False` copies it, as agentkit does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

from tests.benchmarks.histories import PlainCall, PlainMsg, PlainResult, PlainText

__all__ = [
    "Floor",
    "Native",
    "convert_anthropic",
    "copy_json",
    "convert_multi_anthropic",
    "convert_multi_openai",
    "convert_openai",
]

Native: TypeAlias = list[dict[str, Any]]
Floor: TypeAlias = Callable[[Sequence[PlainMsg], bool], Native]


def copy_json(value: Any) -> Any:
    """Returns a copy of a JSON value with new dicts and lists, which shares the strings."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: item if type(item) is str else copy_json(item) for key, item in pairs}
    if isinstance(value, list):
        return [item if type(item) is str else copy_json(item) for item in cast("Iterable[Any]", value)]
    return value


def convert_openai(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """Returns the messages of an OpenAI Chat Completions request."""
    out: Native = []
    for msg in msgs:
        content = msg.content
        if isinstance(content, str):
            out.append({"role": msg.role, "content": content})
            continue
        texts: list[str] = []
        calls: Native = []
        for block in content:
            if isinstance(block, PlainText):
                texts.append(block.text)
            elif isinstance(block, PlainCall):
                text = json.dumps(block.input) if dump else block.arguments
                function = {"name": block.name, "arguments": text}
                calls.append({"id": block.id, "type": "function", "function": function})
            else:
                out.append({"role": "tool", "tool_call_id": block.id, "content": block.output})
        if calls:
            content_text = "\n".join(texts) if texts else None
            out.append({"role": "assistant", "content": content_text, "tool_calls": calls})
        elif texts:
            out.append({"role": msg.role, "content": texts[0] if len(texts) == 1 else "\n".join(texts)})
    return out


def convert_anthropic(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """Returns the messages of an Anthropic Messages request, without the system prompt."""
    out: Native = []
    for msg in msgs:
        content = msg.content
        if isinstance(content, str):
            if msg.role != "system":
                out.append({"role": msg.role, "content": [{"type": "text", "text": content}]})
            continue
        blocks: Native = []
        role = "user" if msg.role == "user" else "assistant"
        for block in content:
            if isinstance(block, PlainText):
                blocks.append({"type": "text", "text": block.text})
            elif isinstance(block, PlainCall):
                arguments = block.input if dump else copy_json(block.input)
                blocks.append({"type": "tool_use", "id": block.id, "name": block.name, "input": arguments})
            else:
                role = "user"
                blocks.append({"type": "tool_result", "tool_use_id": block.id, "content": block.output})
        out.append({"role": role, "content": blocks})
    return out


def convert_multi_openai(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """Returns Chat Completions messages, with consecutive messages without tools as parts of one user turn."""
    return _convert_with_frames(msgs, dump, convert_openai)


def convert_multi_anthropic(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """Returns Anthropic messages, with consecutive messages without tools as parts of one user turn."""
    return _convert_with_frames(msgs, dump, convert_anthropic)


def _convert_with_frames(msgs: Sequence[PlainMsg], dump: bool, convert: Floor) -> Native:
    out: Native = []
    parts: Native = []
    for at, msg in enumerate(msgs):
        content = msg.content
        if isinstance(content, str):
            if at == 0 and msg.role == "system":
                out.append({"role": "system", "content": content})
            else:
                if not parts:
                    parts.append({"type": "text", "text": "<history>"})
                parts.append({"type": "text", "text": f"\n{msg.name}: {content}"})
            continue
        if isinstance(content[0], PlainCall | PlainResult) or isinstance(content[-1], PlainCall):
            if parts:
                parts.append({"type": "text", "text": "\n</history>"})
                out.append({"role": "user", "content": parts})
                parts = []
            out.extend(convert((msg,), dump))
            continue
        if not parts:
            parts.append({"type": "text", "text": "<history>"})
        for block in content:
            if isinstance(block, PlainText):
                parts.append({"type": "text", "text": f"\n{msg.name}: {block.text}"})
    if parts:
        parts.append({"type": "text", "text": "\n</history>"})
        out.append({"role": "user", "content": parts})
    return out
