"""Logs of OpenAI Responses as messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, cast

from agentkit import (
    Block,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    check_log_form,
    check_log_message,
    check_log_request,
    plain,
    plain_values,
    text_of,
)
from agentkit_openai.custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai.log_parts import (
    Origin,
    as_content,
    invalid,
    items_in,
    read_arguments,
    read_content,
    read_output,
)
from agentkit_openai.output_items import picture_of
from agentkit_openai.reasoning import reasoning_state, reasoning_text
from agentkit_openai.responses import CALL_FIELDS, OUTPUT_FIELDS, RESPONSES
from agentkit_openai.roles import as_developers

__all__ = ["load_responses"]

_WIRE = str(RESPONSES.wire)
_ISSUER = str(RESPONSES.issuer)
_ORIGIN = Origin(_WIRE, _ISSUER)
_HELD = ("previous_response_id", "conversation", "prompt")
"""Keys that name messages which the service stores (SDK: ResponseCreateParams)."""


def load_responses(found: object) -> list[Msg]:
    """The messages of a log of Responses: its list of items, a whole request, the `output` of replies inside.

    `instructions` come first, as the system prompt. What a reply says in a row (reasoning, messages, calls, what
    the service did by itself) is one message. Results get the names of their calls. Raises MessageError for
    what is no such log.
    """
    log = _Log()
    whole = cast("Any", found) if isinstance(found, list | tuple) else plain(found)
    if isinstance(whole, dict):
        request = cast("dict[str, Any]", whole)
        check_log_request(request, ("input", "instructions"), _HELD)
        if "input" not in request and isinstance(request.get("output"), list):
            whole = request["output"]
        log.instruct(request.get("instructions"))
        if isinstance(request.get("input"), str):
            log.add("user", text_of(request["input"]), "user")
            return log.msgs
    entries = items_in(cast("object", whole), "input", ("role", "type"), ("instructions",))
    for at, entry in enumerate(entries):
        log.read(entry, f"input[{at}]")
    log.flush()
    return log.msgs


class _Log:
    """One log: what was read, what the assistant is saying, and the calls so far."""

    def __init__(self) -> None:
        self.msgs: list[Msg] = []
        self._saying: list[Block] = []
        self._names: dict[str, str] = {}

    def add(self, name: str, content: str | list[Block], role: Literal["user", "system"]) -> None:
        """One message more, behind what the assistant was saying."""
        self.flush()
        self.msgs.append(Msg(name, content, role))

    def instruct(self, instructions: object) -> None:
        """The system prompt; of a reply it may be a list of items."""
        if isinstance(instructions, str):
            self.add("system", text_of(instructions), "system")
        elif isinstance(instructions, list):
            for at, entry in enumerate(cast("list[Any]", plain_values(cast("object", instructions)))):
                self.read(entry, f"instructions[{at}]")
        elif instructions is not None:
            reason = "it is neither text nor a list of items"
            self.add("system", [invalid(instructions, reason, "instructions")], "system")

    def flush(self) -> None:
        """The assistant has said what it had to say."""
        said, self._saying = self._saying, []
        if said:
            self.msgs.append(Msg("assistant", as_content(said), "assistant"))

    def read(self, entry: object, place: str) -> None:
        """One item (SDK: ResponseInputItemParam)."""
        if not isinstance(entry, dict):
            self.add("unknown", [invalid(entry, "it is no item", place)], "user")
            return
        item = cast("dict[str, Any]", entry)
        check_log_form(item, place, "openai openai-responses")
        kind = item.get("type") or ("message" if "role" in item else None)
        if not kind and item.keys() == {"id"}:
            kind = "item_reference"  # SDK: ItemReference.type may be left out
        if kind == "message":
            self._message(item, place)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self.add("tool", [self._result(item, place)], "system")
        elif isinstance(kind, str):
            self._saying.append(self._said(kind, item, place))
        else:
            check_log_message(item, place, ("type",), (), "openai openai-responses")
            self.add("unknown", [invalid(item, "an item without a type", place)], "user")

    def _message(self, item: dict[str, Any], place: str) -> None:
        role = item.get("role")
        check_log_message(item, place, ("content",), (), "openai openai-responses")
        blocks = read_content(item.get("content"), _ORIGIN, f"{place}.content")
        if role == "assistant":
            self._saying.extend(_phased(blocks, text_of(item.get("phase"))))
        elif role in ("user", "system", "developer"):
            side: Literal["user", "system"] = "user" if role == "user" else "system"
            told = as_developers(blocks, _ISSUER) if role == "developer" else blocks
            self.add(side, as_content(told), side)
        else:
            self.add("unknown", [invalid(item, "its role is none that the wire has", place)], "user")

    def _said(self, kind: str, item: dict[str, Any], place: str) -> Block:
        """What the assistant said, and what the service did; items of yours that only the wire knows among it."""
        if kind == "reasoning":
            return ThinkingBlock(reasoning_text(item), OpaqueState(_ISSUER, **reasoning_state(item)))
        if kind in ("function_call", "custom_tool_call"):
            try:
                return self._call(kind, item)
            except MessageError as error:
                return invalid(item, str(error), place)
        return picture_of(item) or OpaqueBlock(_WIRE, item)

    def _call(self, kind: str, item: dict[str, Any]) -> ToolUseBlock:
        id, name = text_of(item.get("call_id")), text_of(item.get("name"))
        self._names[id] = name
        fields = {key: item[key] for key in CALL_FIELDS if item.get(key)}
        if kind == "custom_tool_call":
            state = OpaqueState(_ISSUER, fields={**CUSTOM_CALL, **fields})
            return ToolUseBlock(id, name, custom_input(text_of(item.get("input"))), state=state)
        given, raw = read_arguments(item.get("arguments"))
        return ToolUseBlock(id, name, given, raw, OpaqueState(_ISSUER, fields=fields) if fields else None)

    def _result(self, item: dict[str, Any], place: str) -> ToolResultBlock:
        id = text_of(item.get("call_id"))
        name = text_of(item.get("name")) or self._names.get(id, "")
        output = read_output(item.get("output"), _ORIGIN, f"{place}.output")
        return ToolResultBlock(
            id, name, _with_fields(output, {key: item[key] for key in OUTPUT_FIELDS if item.get(key)})
        )


def _with_fields(output: str | list[Any], fields: dict[str, Any]) -> str | list[Any]:
    """The output of a tool, its first text with the keys that it goes back with."""
    items = [TextBlock(output)] if isinstance(output, str) else output
    at = next((at for at, item in enumerate(items) if isinstance(item, TextBlock)), None)
    if not fields or at is None:
        return output
    return [*items[:at], replace(items[at], state=OpaqueState(_ISSUER, fields=fields)), *items[at + 1 :]]


def _phased(blocks: list[Block], phase: str) -> list[Block]:
    """The texts of one message, with the phase that it goes back with."""
    if not phase:
        return blocks
    return [
        replace(block, state=OpaqueState(_ISSUER, fields={**_fields(block), "phase": phase}))
        if isinstance(block, TextBlock)
        else block
        for block in blocks
    ]


def _fields(block: TextBlock) -> dict[str, Any]:
    return block.state.fields or {} if block.state else {}
