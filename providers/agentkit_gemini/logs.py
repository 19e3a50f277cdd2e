"""Gemini's own contents, or a whole request, as messages (SDK: GenerateContentConfig, Content)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from agentkit.provider_kit import (
    Block,
    InvalidBlock,
    MediaBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_list,
    as_object,
    as_text,
    check_log_message,
    check_log_request,
    describe_log_format,
    make_json_safe,
    read_arguments,
)
from agentkit_gemini._parts import (
    OPAQUE,
    carried,
    display_name,
    holds_content,
    is_stored_file,
    media_block,
    opaque_data,
    pick,
    shallow,
    signature_of,
    standard,
)
from agentkit_gemini._tool_responses import told_response

__all__ = ["load_native"]

_STAND_INS = frozenset(
    # ai.google.dev thought-signatures: what a call carries that the model did not make; REST logs have the words
    # themselves, the SDK's their base64 text.
    spelling
    for word in ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
    for spelling in (standard(word), base64.b64encode(word.encode()).decode("ascii"))
)


_HELD = ("cached_content", "cachedContent")
"""Keys that name contents which the service stores (google-genai: GenerateContentConfig.cached_content)."""


def load_native(found: object) -> list[Msg]:
    """A conversation from its contents, or from a request: the arguments of `generate_content`, or its JSON body.

    SDK objects may stand anywhere in it, keys in snake_case or camelCase. The system instruction comes first;
    function responses become messages of their own, under the names and ids of their calls. What the server ran,
    and a file of the Files API, is an OpaqueBlock; what cannot be read is kept as InvalidBlock. The documented
    stand-ins for signatures are left off. Raises MessageError for what is no conversation of Gemini's.
    """
    given = make_json_safe(found, "log")
    request = as_object(given) if "contents" in as_object(given) else {"contents": given}
    system = pick(request, "system_instruction") or pick(as_object(request.get("config")), "system_instruction")
    for place in (request, as_object(request.get("config"))):
        check_log_request(place, ("contents", "system_instruction", "systemInstruction"), _HELD)
    contents = _contents(request["contents"])
    log = _Log(_ids(contents))
    loaded = [Msg("system", blocks, "system")] if (blocks := log.system(system)) else []
    for number, content in enumerate(contents):
        loaded += log.content(content, f"contents[{number}]")
    return loaded


def _contents(found: object) -> list[dict[str, Any]]:
    """Contents in every form that the SDK takes (SDK: ContentListUnion): texts and parts by themselves are the
    user's, but for the parts that only a model makes.
    """
    items = cast("list[Any]", found) if isinstance(found, list) else [found]
    contents = [_content(item, f"contents[{at}]") for at, item in enumerate(items)]
    joined: list[dict[str, Any]] = []
    for bare, run in groupby(contents, key=lambda one: one.get("bare")):
        if bare:
            joined.append({"role": bare, "parts": [part for one in run for part in one["parts"]]})
        else:
            joined += run
    return joined


def _content(item: object, place: str) -> dict[str, Any]:
    if isinstance(item, str):
        return {"bare": "user", "parts": [{"text": item}]}
    if not isinstance(item, dict) or not item:
        raise MessageError(place, "it is no content", describe_log_format(cast("object", item)))
    found = shallow(cast("dict[str, Any]", item))
    if "parts" in found or "role" in found:
        check_log_message(found, place, ("parts",), (), "gemini")
        if not isinstance(found.get("parts"), list | None):
            reason = f"expected a list, got {type(found['parts']).__name__}"
            raise MessageError(f"{place}.parts", reason, "Pass a list of parts.")
        return {"role": found.get("role"), "parts": as_list(found.get("parts"))}
    if not found.keys() & _PARTS:
        raise MessageError(place, "it is neither a content nor a part", describe_log_format(cast("object", item)))
    return {"bare": "model" if "function_call" in found else "user", "parts": [found]}


_PARTS = frozenset({"text", "inline_data", "file_data", "function_call", "function_response", *OPAQUE})


def _ids(contents: list[dict[str, Any]]) -> frozenset[str]:
    """The ids that calls and responses have in these contents."""
    parts = (shallow(as_object(part)) for content in contents for part in content["parts"])
    said = (as_object(part.get(kind)) for part in parts for kind in ("function_call", "function_response"))
    return frozenset(as_text(one.get("id")) for one in said)


class _Log:
    """One conversation as it is read."""

    def __init__(self, taken: frozenset[str]) -> None:
        self.taken = taken
        self.waiting: list[tuple[str, str]] = []  # calls without a response: id and name
        self.count = 0

    def system(self, found: object) -> list[Block]:
        """The system instruction: a text, parts, or a content."""
        if isinstance(found, str):
            return [TextBlock(found)] if found else []
        parts = as_object(found).get("parts") if "parts" in as_object(found) else found
        told = cast("list[Any]", parts) if isinstance(parts, list) else [parts] if parts else []
        whole = [{"text": part} if isinstance(part, str) else part for part in told]
        return self._blocks(whole, "system_instruction.parts", model=False)

    def content(self, content: dict[str, Any], place: str) -> Iterator[Msg]:
        """One content: its responses, and what else it says, each in a message of its own."""
        role = content.get("role") or "user"
        if role not in ("user", "model", "function"):
            reason = f"expected 'user' or 'model', got {role!r}"
            raise MessageError(f"{place}.role", reason, describe_log_format(content))
        blocks = self._blocks(content["parts"], f"{place}.parts", model=role == "model")
        for results, run in groupby(blocks, key=lambda block: isinstance(block, ToolResultBlock)):
            if results:
                yield Msg("system", list(run), "system")
            elif role == "model":
                yield Msg("assistant", list(run), "assistant")
            else:
                yield Msg("user", list(run), "user")

    def _blocks(self, parts: list[Any], place: str, *, model: bool) -> list[Block]:
        return [
            block for at, part in enumerate(parts) for block in self._block(part, f"{place}[{at}]", model=model)
        ]

    def _block(self, found: object, place: str, *, model: bool) -> list[Block]:
        part = {"text": found} if isinstance(found, str) else shallow(as_object(found))
        try:
            block = self._read(part, model=model)
        except MessageError as error:
            return [InvalidBlock(found, f"{error.place}: {error.reason}", place)]
        if block is None:
            return [InvalidBlock(found, "no part that is known", place)]
        return [block]

    def _read(self, part: dict[str, Any], *, model: bool) -> Block | None:
        state = _state(part, model=model)
        if "function_call" in part:
            return self._call(shallow(as_object(part["function_call"])), state)
        if "function_response" in part:
            return self._response(shallow(as_object(part["function_response"])))
        if is_stored_file(part) or any(key in part for key in OPAQUE) or (state and not holds_content(part)):
            return OpaqueBlock("gemini", opaque_data(part))
        if "inline_data" in part or "file_data" in part:
            return _medium(part, state, model=model)
        if not isinstance(part.get("text", "" if state else None), str):
            return None
        text = as_text(part.get("text"))
        if part.get("thought") is True:
            return ThinkingBlock(text, state or OpaqueState("gemini"))
        return TextBlock(text, state=state)

    def _call(self, call: dict[str, Any], state: OpaqueState | None) -> ToolUseBlock:
        id, name = as_text(call.get("id")) or self._made_up_id(), as_text(call.get("name"))
        self.waiting.append((id, name))
        return ToolUseBlock(id, name, *read_arguments(call.get("args")), state)

    def _made_up_id(self) -> str:
        """An id for a call that has none (Gemini 2.5 on Vertex): the next number that no other has for its id."""
        self.count += 1
        while f"call_{self.count}" in self.taken:
            self.count += 1
        return f"call_{self.count}"

    def _response(self, found: dict[str, Any]) -> ToolResultBlock:
        id, name = as_text(found.get("id")), as_text(found.get("name"))
        told, failed = told_response(found)
        call = self._call_of(id, name)
        if call in self.waiting:
            self.waiting.remove(call)
        media = [_item(part) for part in as_list(found.get("parts"))]
        said = [told] if told.text else []
        output = told.text if not media and told.state is None else (*said, *media)
        return ToolResultBlock(call[0], name or call[1], output, failed)

    def _call_of(self, id: str, name: str) -> tuple[str, str]:
        """The call that a response answers, of those that wait: by its id, else the first of its name, else, if it
        says neither, the first.
        """
        alike = [call for call in self.waiting if (call[0] == id if id else not name or call[1] == name)]
        same = (call for call in alike if call[1] == name)  # calls of one id may differ in their names
        return next(same, None) or next(iter(alike), (id or self._made_up_id(), name))


def _state(part: dict[str, Any], *, model: bool) -> OpaqueState | None:
    """What a model's part was signed with, and what any came with; a stand-in is no signature."""
    signature, fields = signature_of(part) if model else None, {**carried(part), **display_name(part)}
    if signature in _STAND_INS:
        signature = None
    return (
        OpaqueState("gemini", thought_signature=signature, fields=fields or None) if signature or fields else None
    )


def _item(found: object) -> MediaBlock | OpaqueBlock | InvalidBlock:
    """What a function response holds besides its object."""
    part = shallow(as_object(found))
    if is_stored_file(part):
        return OpaqueBlock("gemini", opaque_data(part))
    try:
        return _medium(part, _state(part, model=False), model=False)
    except MessageError as error:
        return InvalidBlock(found, f"{error.place}: {error.reason}", "function_response.parts")


def _medium(part: dict[str, Any], state: OpaqueState | None, *, model: bool) -> MediaBlock:
    block = media_block(part)
    if model and part.get("thought") is True:
        fields = {**((state and state.fields) or {}), "thought": True}
        state = OpaqueState("gemini", thought_signature=state.thought_signature if state else None, fields=fields)
    return replace(block, state=state) if state else block
