"""Loader for logged contents and requests of Gemini (google-genai: Content, GenerateContentConfig)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal, cast

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
    describe_value,
    ensure_json_safe,
    get_state_fields,
    list_keys,
    read_arguments,
)
from agentkit_gemini._part_reader import (
    OPAQUE_KEYS,
    copy_opaque_part,
    get_display_name,
    get_extra_fields,
    get_field,
    get_signature,
    has_content,
    is_stored_file,
    normalize_base64,
    normalize_keys,
    parse_media,
)
from agentkit_gemini._tool_responses import parse_tool_response

__all__ = ["load_native"]

_PLACEHOLDER_SIGNATURES = frozenset(
    # Placeholder signatures for tool calls that Gemini did not write (Gemini docs: thought-signatures). Such a
    # signature is plain text in REST logs, and base64 text in SDK logs.
    spelling
    for word in ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
    for spelling in (normalize_base64(word), base64.b64encode(word.encode()).decode("ascii"))
)

_STORED_KEYS = ("cached_content", "cachedContent")
"""Request keys that refer to a conversation stored by the provider.

Source: google-genai, GenerateContentConfig.cached_content.
"""

_PART_KEYS = frozenset({"text", "inline_data", "file_data", "function_call", "function_response", *OPAQUE_KEYS})


def load_native(log: object) -> list[Msg]:
    """Loads a conversation from the `contents` of a request, or from a complete request.

    A request is a dict with the arguments of `generate_content`, or the JSON body of the HTTP request. The log may
    contain SDK objects, and keys in snake_case or camelCase.

    The system instruction becomes the first message. Function responses become separate messages with the names
    and ids of their calls. Unreadable parts become InvalidBlocks. Files of the Files API become OpaqueBlocks, and
    so do calls and results of tools that Google runs. Placeholder signatures that Google documents are omitted.

    Raises:
        MessageError: The value is not a conversation in Gemini's format.
    """
    value = ensure_json_safe(log, "log")
    request = as_object(value) if "contents" in as_object(value) else {"contents": value}
    config = as_object(request.get("config"))
    system = get_field(request, "system_instruction") or get_field(config, "system_instruction")
    for fields in (request, config):
        check_log_request(fields, ("contents", "system_instruction", "systemInstruction"), _STORED_KEYS)
    contents = _parse_contents(request["contents"])
    loader = _Loader(_collect_ids(contents))
    msgs = [Msg("system", blocks, "system")] if (blocks := loader.load_system(system)) else []
    for index, content in enumerate(contents):
        msgs += loader.load_content(content, f"contents[{index}]")
    return msgs


def _parse_contents(value: object) -> list[dict[str, Any]]:
    """Converts any value that the SDK accepts as `contents` to a list of dicts with `role` and `parts`.

    A list can contain strings and parts that are not inside a `Content` object. Adjacent function calls outside a
    `Content` object become one dict with the role `model`. Other adjacent strings and parts outside a `Content`
    object become one dict with the role `user`. Source: google-genai, ContentListUnion.
    """
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    contents = [_parse_content(item, f"contents[{index}]") for index, item in enumerate(items)]
    joined: list[dict[str, Any]] = []
    for bare_role, run in groupby(contents, key=lambda content: content.get("bare_role")):
        if bare_role:
            joined.append({"role": bare_role, "parts": [part for content in run for part in content["parts"]]})
        else:
            joined += run
    return joined


def _parse_content(item: object, place: str) -> dict[str, Any]:
    """Returns a dict with the role and the `parts` of an item: a `Content` object, a part or a string.

    For a `Content` object, the dict has the key `role`. A part or a string has no role, so the dict has the key
    `bare_role` with the role "model" for a function call, otherwise "user".
    """
    if isinstance(item, str):
        return {"bare_role": "user", "parts": [{"text": item}]}
    if not isinstance(item, dict) or not item:
        reason = (
            f"expected a `Content` object, a `Part` object or a string, got {describe_value(cast('object', item))}"
        )
        raise MessageError(place, reason, describe_log_format(cast("object", item)))
    fields = normalize_keys(cast("dict[str, Any]", item))
    if "parts" in fields or "role" in fields:
        check_log_message(fields, place, ("parts",), (), "gemini")
        if not isinstance(fields.get("parts"), list | None):
            raise MessageError(
                f"{place}.parts",
                f"expected a list of parts, got {describe_value(fields['parts'])}",
                "Pass a list.",
            )
        return {"role": fields.get("role"), "parts": as_list(fields.get("parts"))}
    if not fields.keys() & _PART_KEYS:
        reason = (
            f"expected a key of a `Content` or `Part` object, such as `parts` or `text`, got {list_keys(fields)}"
        )
        raise MessageError(place, reason, describe_log_format(cast("object", item)))
    return {"bare_role": "model" if "function_call" in fields else "user", "parts": [fields]}


def _collect_ids(contents: list[dict[str, Any]]) -> frozenset[str]:
    """Returns the ids of all function calls and function responses in the contents."""
    parts = (normalize_keys(as_object(part)) for content in contents for part in content["parts"])
    functions = (as_object(part.get(key)) for part in parts for key in ("function_call", "function_response"))
    return frozenset(as_text(function.get("id")) for function in functions)


class _Loader:
    """Loader for one conversation.

    Attributes:
        ids: All call ids in the log. A generated id must not be one of these ids.
        open_calls: Id and tool name of each call that has no response yet.
        count: Number in the last generated id, such as 2 in `call_2`. 0 before the first id.
    """

    def __init__(self, ids: frozenset[str]) -> None:
        self.ids = ids
        self.open_calls: list[tuple[str, str]] = []
        self.count = 0

    def load_system(self, system: object) -> list[Block]:
        """Returns the blocks of a system instruction (a string, a list of parts, or a `Content` object)."""
        if isinstance(system, str):
            return [TextBlock(system)] if system else []
        parts = as_object(system).get("parts") if "parts" in as_object(system) else system
        items = cast("list[Any]", parts) if isinstance(parts, list) else [parts] if parts else []
        items = [{"text": part} if isinstance(part, str) else part for part in items]
        return self._load_parts(items, "system_instruction.parts", model=False)

    def load_content(self, content: dict[str, Any], place: str) -> Iterator[Msg]:
        """Yields the messages for one `Content` object. No message has both tool results and other blocks."""
        role = content.get("role") or "user"
        if role not in ("user", "model", "function"):
            reason = f"expected 'user' or 'model', got {role!r}"
            raise MessageError(f"{place}.role", reason, describe_log_format(content))
        blocks = self._load_parts(content["parts"], f"{place}.parts", model=role == "model")
        for results, run in groupby(blocks, key=lambda block: isinstance(block, ToolResultBlock)):
            speaker: Literal["system", "assistant", "user"]
            speaker = "system" if results else "assistant" if role == "model" else "user"
            yield Msg(speaker, [*run], speaker)

    def _load_parts(self, parts: list[Any], place: str, *, model: bool) -> list[Block]:
        return [self._load_part(part, f"{place}[{index}]", model=model) for index, part in enumerate(parts)]

    def _load_part(self, value: object, place: str, *, model: bool) -> Block:
        part = {"text": value} if isinstance(value, str) else normalize_keys(as_object(value))
        try:
            block = self._parse_part(part, model=model)
        except MessageError as error:
            return InvalidBlock(value, f"{error.place}: {error.reason}", place)
        reason = f"expected a part of a known kind, such as `text`, got {describe_value(value)}"
        return block or InvalidBlock(value, reason, place)

    def _parse_part(self, part: dict[str, Any], *, model: bool) -> Block | None:
        state = _parse_state(part, model=model)
        if "function_call" in part:
            return self._parse_call(normalize_keys(as_object(part["function_call"])), state)
        if "function_response" in part:
            return self._parse_response(normalize_keys(as_object(part["function_response"])))
        if is_stored_file(part) or any(key in part for key in OPAQUE_KEYS) or (state and not has_content(part)):
            return OpaqueBlock("gemini", copy_opaque_part(part))
        if "inline_data" in part or "file_data" in part:
            return _parse_media(part, state, model=model)
        if not isinstance(part.get("text", "" if state else None), str):
            return None
        text = as_text(part.get("text"))
        if part.get("thought") is True:
            return ThinkingBlock(text, state or OpaqueState("gemini"))
        return TextBlock(text, state=state)

    def _parse_call(self, call: dict[str, Any], state: OpaqueState | None) -> ToolUseBlock:
        id, name = as_text(call.get("id")) or self._generate_id(), as_text(call.get("name"))
        self.open_calls.append((id, name))
        return ToolUseBlock(id, name, *read_arguments(call.get("args")), state)

    def _generate_id(self) -> str:
        """Returns a new id for a tool call without an id. Gemini 2.5 on Vertex AI sends calls without ids."""
        self.count += 1
        while f"call_{self.count}" in self.ids:
            self.count += 1
        return f"call_{self.count}"

    def _parse_response(self, response: dict[str, Any]) -> ToolResultBlock:
        id, name = as_text(response.get("id")), as_text(response.get("name"))
        text, is_error = parse_tool_response(response)
        call = self._find_call(id, name)
        if call in self.open_calls:
            self.open_calls.remove(call)
        media = [_parse_response_part(part) for part in as_list(response.get("parts"))]
        texts = [text] if text.text else []
        output = text.text if not media and text.state is None else (*texts, *media)
        return ToolResultBlock(call[0], name or call[1], output, is_error)

    def _find_call(self, id: str, name: str) -> tuple[str, str]:
        """Returns the call id and the tool name for a function response.

        The method compares the response with each call that has no response yet. A response with an id matches the
        call with this id. A response with only a tool name matches the first call of this tool. A response without
        id and tool name matches the first call. If no call matches, the method returns the id and the tool name of
        the response. If the response has no id, the method returns a new id.
        """
        matches = [call for call in self.open_calls if (call[0] == id if id else not name or call[1] == name)]
        # Several calls can have the same id. A call with the tool name of the response is then preferred.
        same_name = [call for call in matches if call[1] == name]
        return next(iter(same_name or matches), None) or (id or self._generate_id(), name)


def _parse_state(part: dict[str, Any], *, model: bool) -> OpaqueState | None:
    """Returns opaque state with the additional fields of a part. Returns None if the state would be empty.

    If `model` is True, the model wrote the part. The state then also contains the signature of the part.
    """
    signature = get_signature(part) if model else None
    fields = {**get_extra_fields(part), **get_display_name(part)}
    if signature in _PLACEHOLDER_SIGNATURES:
        signature = None
    has_state = bool(signature or fields)
    return OpaqueState("gemini", thought_signature=signature, fields=fields or None) if has_state else None


def _parse_response_part(value: object) -> MediaBlock | OpaqueBlock | InvalidBlock:
    """Converts a part of a function response to a block."""
    part = normalize_keys(as_object(value))
    if is_stored_file(part):
        return OpaqueBlock("gemini", copy_opaque_part(part))
    try:
        return _parse_media(part, _parse_state(part, model=False), model=False)
    except MessageError as error:
        return InvalidBlock(value, f"{error.place}: {error.reason}", "function_response.parts")


def _parse_media(part: dict[str, Any], state: OpaqueState | None, *, model: bool) -> MediaBlock:
    """Converts a media item to a block.

    If the model generated the item while thinking, the opaque state of the block contains the field `thought`.
    """
    block = parse_media(part)
    if model and part.get("thought") is True:
        fields = {**get_state_fields(state), "thought": True}
        state = OpaqueState("gemini", thought_signature=state.thought_signature if state else None, fields=fields)
    return replace(block, state=state) if state else block
