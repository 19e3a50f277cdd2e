"""Logs of OpenAI Responses as messages."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Any, Literal, cast

from agentkit.provider_kit import (
    Block,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_object,
    as_text,
    check_log_format,
    check_log_message,
    check_log_request,
    get_state_fields,
    make_json_safe,
    native_to_json,
    read_arguments,
)
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._log_parts import (
    LogSource,
    as_content,
    invalid,
    items_in,
    read_content,
    read_output,
)
from agentkit_openai._roles import as_developers
from agentkit_openai.responses._output_items import image_state, picture_of
from agentkit_openai.responses._reasoning import reasoning_state, reasoning_text
from agentkit_openai.responses._turn_items import CALL_FIELDS
from agentkit_openai.responses.capabilities import OUTPUT_FIELDS, RESPONSES

__all__ = ["load_responses"]

_WIRE = str(RESPONSES.wire)
_ISSUER = str(RESPONSES.issuer)
_ORIGIN = LogSource(_WIRE, _ISSUER)
_HELD = ("previous_response_id", "conversation", "prompt")
"""Keys that name messages which the service stores (SDK: ResponseCreateParams)."""


def load_responses(found: object) -> list[Msg]:
    """The messages of a log of Responses: its list of items, a whole request, the `output` of replies inside.

    `instructions` come first, as the system prompt. What a reply says in a row (reasoning, messages, calls, what
    the service did by itself) is one message. Results get the names of their calls. Raises MessageError for
    what is no such log.
    """
    log = _Log()
    whole = cast("Any", found) if isinstance(found, list | tuple) else native_to_json(found)
    if isinstance(whole, dict):
        request = cast("dict[str, Any]", whole)
        check_log_request(request, ("input", "instructions"), _HELD)
        if "input" not in request and isinstance(request.get("output"), list):
            whole = request["output"]
        log.instruct(request.get("instructions"))
        if isinstance(request.get("input"), str):
            log.add("user", as_text(request["input"]), "user")
            return log.msgs
    entries = items_in(cast("object", whole), "input", ("role", "type"), ("instructions",))
    log.read_all(entries, "input")
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
            self.add("system", as_text(instructions), "system")
        elif isinstance(instructions, list):
            self.read_all(make_json_safe(cast("object", instructions), "instructions"), "instructions")
        elif instructions is not None:
            reason = "it is neither text nor a list of items"
            self.add("system", [invalid(instructions, reason, "instructions")], "system")

    def flush(self) -> None:
        """The assistant has said what it had to say."""
        said, self._saying = self._saying, []
        if said:
            self.msgs.append(Msg("assistant", as_content(said), "assistant"))

    def read_all(self, entries: list[Any], name: str) -> None:
        """A list of items, each with the id of the one after it."""
        for at, (entry, following) in enumerate(zip_longest(entries, entries[1:])):
            self.read(entry, f"{name}[{at}]", as_object(following).get("id"))

    def read(self, entry: object, place: str, follower: object) -> None:
        """One item (SDK: ResponseInputItemParam)."""
        if not isinstance(entry, dict):
            self.add("unknown", [invalid(entry, "it is no item", place)], "user")
            return
        item = cast("dict[str, Any]", entry)
        check_log_format(item, place, "openai openai-responses")
        kind = item.get("type") or ("message" if "role" in item else None)
        if not kind and item.keys() == {"id"}:
            kind = "item_reference"  # SDK: ItemReference.type may be left out
        if kind == "message":
            self._message(item, place)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self.add("tool", [self._result(item, place)], "system")
        elif isinstance(kind, str):
            self._saying.append(self._said(kind, item, place, follower))
        else:
            check_log_message(item, place, ("type",), (), "openai openai-responses")
            self.add("unknown", [invalid(item, "an item without a type", place)], "user")

    def _message(self, item: dict[str, Any], place: str) -> None:
        role = item.get("role")
        check_log_message(item, place, ("content",), (), "openai openai-responses")
        blocks = read_content(item.get("content"), _ORIGIN, f"{place}.content")
        if role == "assistant":
            phase = as_text(item.get("phase"))
            self._saying.extend(_with_state(blocks, {"phase": phase} if phase else {}, self._id_of(item)))
        elif role in ("user", "system", "developer"):
            side: Literal["user", "system"] = "user" if role == "user" else "system"
            told = as_developers(blocks, _ISSUER) if role == "developer" else blocks
            self.add(side, as_content(told), side)
        else:
            self.add("unknown", [invalid(item, "its role is none that the wire has", place)], "user")

    def _said(self, kind: str, item: dict[str, Any], place: str, follower: object) -> Block:
        """What the assistant said, and what the service did; items of yours that only the wire knows among it."""
        if kind == "reasoning":
            return ThinkingBlock(reasoning_text(item), OpaqueState(_ISSUER, **reasoning_state(item, follower)))
        if kind in ("function_call", "custom_tool_call"):
            try:
                return self._call(kind, item)
            except MessageError as error:
                return invalid(item, str(error), place)
        picture = picture_of(item)
        return (
            replace(picture, state=OpaqueState(_ISSUER, **image_state(item)))
            if picture
            else OpaqueBlock(_WIRE, item)
        )

    def _call(self, kind: str, item: dict[str, Any]) -> ToolUseBlock:
        id, name = as_text(item.get("call_id")), as_text(item.get("name"))
        self._names[id] = name
        fields = {key: item[key] for key in CALL_FIELDS if item.get(key)}
        own_id = self._id_of(item)
        if kind == "custom_tool_call":
            state = OpaqueState(_ISSUER, item_id=own_id, fields={**CUSTOM_CALL, **fields})
            return ToolUseBlock(id, name, custom_input(as_text(item.get("input"))), state=state)
        given, raw = read_arguments(item.get("arguments"))
        kept = OpaqueState(_ISSUER, item_id=own_id, fields=fields or None) if fields or own_id else None
        return ToolUseBlock(id, name, given, raw, kept)

    def _id_of(self, item: dict[str, Any]) -> str | None:
        """The id of an item that comes after reasoning, with which it goes back."""
        has_reasoning = any(isinstance(block, ThinkingBlock) for block in self._saying)
        return as_text(item.get("id")) or None if has_reasoning else None

    def _result(self, item: dict[str, Any], place: str) -> ToolResultBlock:
        id = as_text(item.get("call_id"))
        name = as_text(item.get("name")) or self._names.get(id, "")
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


def _with_state(blocks: list[Block], fields: dict[str, Any], id: str | None) -> list[Block]:
    """Returns the blocks of one message, its texts with the fields and the id that they are sent back with."""
    if not fields and not id:
        return blocks
    return [
        replace(
            block,
            state=OpaqueState(_ISSUER, item_id=id, fields={**get_state_fields(block.state), **fields} or None),
        )
        if isinstance(block, TextBlock)
        else block
        for block in blocks
    ]
