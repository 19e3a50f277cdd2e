"""The floor: hand-written loops over slotted dataclasses, with no validation, no repair, no account.

Two variants of each. `dump=True` makes the argument text with `json.dumps` on the way (for Anthropic, whose
wire wants the object: shares it), as a plain loop would. `dump=False` takes the argument text kept
beside the call (for Anthropic: copies the object), as agentkit does.
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


def copy_json(found: Any) -> Any:
    """A fresh copy of a JSON value: new dicts and lists, the same strings."""
    if isinstance(found, dict):
        pairs = cast("dict[str, Any]", found).items()
        return {key: item if type(item) is str else copy_json(item) for key, item in pairs}
    if isinstance(found, list):
        return [item if type(item) is str else copy_json(item) for item in cast("Iterable[Any]", found)]
    return found


def convert_openai(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """OpenAI Chat Completions."""
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
            said = "\n".join(texts) if texts else None
            out.append({"role": "assistant", "content": said, "tool_calls": calls})
        elif texts:
            out.append({"role": msg.role, "content": texts[0] if len(texts) == 1 else "\n".join(texts)})
    return out


def convert_anthropic(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """Anthropic Messages; the system prompt is left to the caller."""
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
                found = block.input if dump else copy_json(block.input)
                blocks.append({"type": "tool_use", "id": block.id, "name": block.name, "input": found})
            else:
                role = "user"
                blocks.append({"type": "tool_result", "tool_use_id": block.id, "content": block.output})
        out.append({"role": role, "content": blocks})
    return out


def convert_multi_openai(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """Runs of tool-free messages as one user turn with a part for each text; OpenAI Chat Completions."""
    return _convert_with_frames(msgs, dump, convert_openai)


def convert_multi_anthropic(msgs: Sequence[PlainMsg], dump: bool) -> Native:
    """The same for Anthropic Messages."""
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
