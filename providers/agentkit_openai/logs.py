"""Loader for Chat Completions logs from OpenAI and from compatible servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from agentkit.provider_kit import (
    Block,
    InvalidBlock,
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
    derive_call_id,
    describe_value,
    ensure_json_safe,
    parse_log_text,
    read_arguments,
    read_log_entries,
)
from agentkit_openai._audio import AudioBuffer
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._log_parts import LogSource, add_citations, as_content, read_content
from agentkit_openai._message_keys import attach_keys, get_extra_keys
from agentkit_openai._reasoning import DETAILS, details_text
from agentkit_openai._refusals import REFUSAL_FIELD, refusal_block
from agentkit_openai.replies import OpenAIChatStreamParser

__all__ = ["load_chat"]


def load_chat(log: object, parser: type[OpenAIChatStreamParser] = OpenAIChatStreamParser) -> list[Msg]:
    """Loads the messages of a Chat Completions log.

    An entry that cannot be read becomes a message with an `InvalidBlock`. A content part of an unknown type
    becomes an `OpaqueBlock`. Tool results get the tool names of their tool calls.

    Unknown keys of a message are stored in the opaque state of its last text and sent back later. If the message
    has no text, the keys are stored in its last tool call or media block. If there is no such block, the keys are
    stored in the metadata of the message.

    Args:
        log: List of messages, a complete request, or the JSON text of either. SDK objects are also accepted.
        parser: Stream parser class of the provider that the log comes from.

    Raises:
        MessageError: `log` is not a log of Chat Completions.
    """
    entries = read_log_entries(ensure_json_safe(parse_log_text(log), "log"))
    reader = _LogReader(parser)
    return [reader.read(entry, f"messages[{index}]") for index, entry in enumerate(entries)]


_CONTENT_KEYS = frozenset({"content"})
_TEXT_KEYS = frozenset({"role", "content", "name"})
_PLAIN_KEYS = frozenset({"role", "content", "name", "tool_calls"})
_TEXT_ROLES = ("user", "assistant", "system")
_MODEL_KEYS = ("content", "tool_calls", "function_call", "refusal", "audio")
_VENDOR_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", "images")
"""Message keys that contain output of the model and that only some vendors send.

If the loader cannot read such a key as a block, the loader stores the key in opaque state.
"""
_WIRES = "openai openai-responses"
"""Wire formats whose content parts the loader reads.

Chat Completions servers also accept content parts of Responses.
"""

_Role: TypeAlias = Literal["user", "assistant", "system"]


class _LogReader:
    """Reader for one log. The reader records tool calls, so that later results get the names of their tools."""

    def __init__(self, parser: type[OpenAIChatStreamParser]) -> None:
        self.vendor = parser.vendor
        self.issuer = parser.issuer
        self.source = LogSource(parser.provider, parser.issuer, self.vendor.reasoning_parts)
        self.reasoning_keys = {*self.vendor.reasoning_fields}
        if self.vendor.reasoning_details:
            self.reasoning_keys.add(DETAILS)
        self.model_keys = frozenset((*_MODEL_KEYS, *self.reasoning_keys))
        self.tool_names: dict[str, str] = {}  # names of tools, by call id
        self.legacy_ids: dict[str, str] = {}  # generated ids of `function_call` entries, by tool name

    def read(self, entry: object, place: str) -> Msg:
        """Reads an entry as a message (openai-python: ChatCompletionMessageParam)."""
        if not isinstance(entry, dict):
            return self._create_invalid(entry, f"expected a message object, got {describe_value(entry)}", place)
        message = cast("dict[str, Any]", entry)
        role = message.get("role")
        name = as_text(message.get("name"))
        keys_read = self.model_keys if role == "assistant" else _CONTENT_KEYS
        check_log_message(message, place, keys_read, _VENDOR_KEYS if role == "assistant" else (), _WIRES)
        content = message.get("content")
        if role in _TEXT_ROLES and type(content) is str and message.keys() <= _TEXT_KEYS:
            return Msg(name or role, content, role)  # a fast path: most messages contain only a text
        if role in ("tool", "function"):
            return self._read_tool_message(message, place)
        if role == "assistant":
            return self._create_msg(
                name or "assistant", self._read_assistant(message, place), "assistant", message
            )
        if role in ("system", "developer", "user"):
            blocks = read_content(message.get("content"), self.source, f"{place}.content")
            msg_role: Literal["user", "system"] = "user" if role == "user" else "system"
            return self._create_msg(name or msg_role, blocks, msg_role, message)
        reason = f"expected a role such as 'user' or 'assistant', got {describe_value(role)}"
        return self._create_invalid(message, reason, place)

    def _create_msg(self, name: str, blocks: list[Block], role: _Role, message: dict[str, Any]) -> Msg:
        """Creates a message from blocks.

        The additional keys of the logged message are stored in the opaque state of a block. If no block can store
        keys, the metadata of the message stores the keys.
        """
        keys = get_extra_keys(message, self.reasoning_keys)
        if message["role"] == "developer":
            keys["role"] = "developer"
        attached = attach_keys(blocks, keys, self.issuer) if keys else blocks
        if attached is None:
            return Msg(name, as_content(blocks), role, metadata=keys)
        return Msg(name, as_content(attached), role)

    def _read_tool_message(self, message: dict[str, Any], place: str) -> Msg:
        """Reads a tool message.

        The additional keys of the tool message are stored in the opaque state of a block in the tool result. If no
        block can store keys, the metadata of the message stores the keys.
        """
        result = self._read_result(message, place)
        keys = get_extra_keys(message, ())
        if not keys:
            return Msg("tool", [result], "system")
        attached = attach_keys(result.items, keys, self.issuer)
        if attached is None:
            return Msg("tool", [result], "system", metadata=keys)
        return Msg("tool", [replace(result, output=tuple(attached))], "system")

    def _create_invalid(self, entry: object, reason: str, place: str) -> Msg:
        return Msg("unknown", [InvalidBlock(entry, reason, place)], "user")

    def _read_result(self, message: dict[str, Any], place: str) -> ToolResultBlock:
        name = as_text(message.get("name"))
        id = as_text(message.get("tool_call_id"))
        if message["role"] == "function" and not id:
            id = self.legacy_ids.get(name, "")
        content = message.get("content")
        if isinstance(content, str):
            output: Any = content
        else:
            output = as_content(read_content(content, self.source, f"{place}.content"))
        return ToolResultBlock(id, name or self.tool_names.get(id, ""), output)

    def _read_assistant(self, message: dict[str, Any], place: str) -> list[Block]:
        """Reads an assistant message as blocks.

        The order of the blocks is reasoning, content, refusal, audio, tool calls, as in parsed replies.
        """
        content = read_content(message.get("content"), self.source, f"{place}.content")
        calls = [
            self._read_call(entry, f"{place}.tool_calls[{index}]")
            for index, entry in enumerate(as_list(message.get("tool_calls")))
        ]
        if message.keys() <= _PLAIN_KEYS:
            return content + calls
        blocks = _read_thinking_blocks(message.get("thinking_blocks")) or self._read_reasoning(message)
        blocks += add_citations(content, message.get("annotations"))
        if refusal := as_text(message.get("refusal")):
            blocks.append(refusal_block(refusal, OpaqueState(self.issuer, fields=REFUSAL_FIELD)))
        if audio := as_object(message.get("audio")):
            blocks.append(self._read_audio(audio))
        blocks += calls
        if any((legacy := as_object(message.get("function_call"))).values()):
            blocks.append(self._read_legacy_call(legacy, place))
        return blocks

    def _read_reasoning(self, message: dict[str, Any]) -> list[Block]:
        texts = (as_text(message.get(field)) for field in self.vendor.reasoning_fields)
        text = next(filter(None, texts), "")
        details = as_list(message.get(DETAILS)) if self.vendor.reasoning_details else []
        if details:
            state = OpaqueState(self.issuer, fields={DETAILS: details})
            return [ThinkingBlock(text or details_text(details), state)]
        return [ThinkingBlock(text, OpaqueState(self.issuer))] if text else []

    def _read_audio(self, audio: dict[str, Any]) -> Block:
        """Reads the audio of an earlier reply as a block.

        If the log contains neither audio data nor a transcript, the audio becomes an opaque block that contains
        only the audio's id. OpenAI accepts the id instead of the audio of an earlier reply.
        """
        buffer = AudioBuffer()
        buffer.add(audio)
        block, transcript = buffer.create_block(None), buffer.transcript
        if block is not None:
            return replace(block, state=OpaqueState(self.issuer, **buffer.state)) if buffer.state else block
        return TextBlock(transcript) if transcript else OpaqueBlock(self.source.wire, {"audio": audio})

    def _read_call(self, entry: object, place: str) -> Block:
        call = as_object(entry)
        custom = as_object(call.get("custom")) if not call.get("function") else {}
        function = custom or as_object(call.get("function"))
        if not function:
            reason = f"expected a tool call with the key `function` or `custom`, got {describe_value(entry)}"
            return InvalidBlock(entry, reason, place)
        id, name = as_text(call.get("id")), as_text(function.get("name"))
        self.tool_names[id] = name
        if custom:
            state = OpaqueState(self.issuer, fields=CUSTOM_CALL)
            return ToolUseBlock(id, name, custom_input(as_text(function.get("input"))), state=state)
        return _create_call(id, name, function.get("arguments"), place)

    def _read_legacy_call(self, function: dict[str, Any], place: str) -> Block:
        """Reads a `function_call` as a tool call with a generated id, because a `function_call` has no id.

        The result of the call has no id either. `_read_result` finds the generated id by the name of the function.
        """
        name = as_text(function.get("name"))
        id = derive_call_id(repr((place, name, function.get("arguments"))))
        self.legacy_ids[name] = id
        self.tool_names[id] = name
        return _create_call(id, name, function.get("arguments"), place)


def _read_thinking_blocks(value: object) -> list[Block]:
    """Reads reasoning of Anthropic's models from messages of LiteLLM (ChatCompletionThinkingBlock)."""
    blocks: list[Block] = []
    for entry in map(as_object, as_list(value)):
        if entry.get("type") == "thinking":
            state = OpaqueState("anthropic", signature=as_text(entry.get("signature")) or None)
            blocks.append(ThinkingBlock(as_text(entry.get("thinking")), state))
        elif entry.get("type") == "redacted_thinking":
            state = OpaqueState("anthropic", redacted_data=as_text(entry.get("data")) or None)
            blocks.append(ThinkingBlock("", state))
    return blocks


def _create_call(id: str, name: str, arguments: object, place: str) -> Block:
    """Creates a tool call, or an `InvalidBlock` if the arguments cannot be read."""
    input, raw_input = read_arguments(arguments)
    try:
        return ToolUseBlock(id, name, input, raw_input)
    except MessageError as error:
        return InvalidBlock(arguments, str(error), place)
