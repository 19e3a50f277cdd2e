"""Logs of Chat Completions, and of all servers that speak that wire, as messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

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
    as_list,
    as_object,
    as_text,
    check_log_message,
    derive_call_id,
    read_arguments,
)
from agentkit_openai._audio import AudioBuffer
from agentkit_openai._custom_calls import CUSTOM_CALL, custom_input
from agentkit_openai._log_parts import (
    LogSource,
    as_content,
    cited,
    invalid,
    items_in,
    read_content,
    read_output,
)
from agentkit_openai._message_keys import further_keys, with_keys
from agentkit_openai._reasoning import DETAILS, details_text
from agentkit_openai._refusals import REFUSAL_FIELD, refusal_block
from agentkit_openai._roles import as_developers
from agentkit_openai.replies import OpenAIChatStreamParser

__all__ = ["load_chat"]


def load_chat(found: object, parser: type[OpenAIChatStreamParser] = OpenAIChatStreamParser) -> list[Msg]:
    """The messages of a log of Chat Completions: its list of messages, a whole request, SDK objects inside.

    `parser` says whose log it is: its reader of replies. Each message keeps its place; what cannot be read is an
    InvalidBlock, what only the server knows an OpaqueBlock. Results get the names of their calls. Further keys of
    a message are opaque state of its last text, else of a call or medium, and go back with it; of a message that
    has none of these they are its metadata. Raises MessageError for what is no such log.
    """
    entries = items_in(found, "messages", ("role",))
    log = _Log(parser)
    return [log.read(entry, f"messages[{at}]") for at, entry in enumerate(entries)]


_CONTENT_KEYS = frozenset({"content"})
_MODEL_KEYS = ("content", "tool_calls", "function_call", "refusal", "audio")
_VENDOR_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", "images")
"""Keys with content of a model that vendors add: they go back as opaque state of the message."""
_FORMS = "openai openai-responses"
"""Whose content parts are read: servers of this wire format take those of Responses too."""

_Role: TypeAlias = Literal["user", "assistant", "system"]


class _Log:
    """One log, and the calls of it so far."""

    def __init__(self, parser: type[OpenAIChatStreamParser]) -> None:
        self.vendor = parser.vendor
        self.issuer = parser.issuer
        self.origin = LogSource(parser.provider, parser.issuer, self.vendor.reasoning_parts)
        self.reasoning_keys = {*self.vendor.reasoning_fields}
        if self.vendor.reasoning_details:
            self.reasoning_keys.add(DETAILS)
        self.model_keys = {*_MODEL_KEYS, *self.reasoning_keys}
        self.names: dict[str, str] = {}  # of calls, by id
        self.legacy: dict[str, str] = {}  # ids of calls that came without one, by name

    def read(self, entry: object, place: str) -> Msg:
        """One message (SDK: ChatCompletionMessageParam)."""
        if not isinstance(entry, dict):
            return self._unread(entry, "expected a message object", place)
        held = cast("dict[str, Any]", entry)
        role = held.get("role")
        name = as_text(held.get("name"))
        read = self.model_keys if role == "assistant" else _CONTENT_KEYS
        check_log_message(held, place, read, _VENDOR_KEYS if role == "assistant" else (), _FORMS)
        if role in ("tool", "function"):
            return self._answer(held, place)
        if role == "assistant":
            return self._msg(name or "assistant", self._assistant(held, place), "assistant", held)
        if role in ("system", "developer", "user"):
            said = read_content(held.get("content"), self.origin, f"{place}.content")
            side: Literal["user", "system"] = "user" if role == "user" else "system"
            told = as_developers(said, self.issuer) if role == "developer" else said
            return self._msg(name or side, told, side, held)
        return self._unread(held, "its role is none that the wire has", place)

    def _msg(self, name: str, blocks: list[Block], role: _Role, held: dict[str, Any]) -> Msg:
        """A message with its further keys: on a block of it, or where none can have them its metadata."""
        keys = further_keys(held, self.reasoning_keys)
        kept = with_keys(blocks, keys, self.issuer, self.vendor.last_keys) if keys else blocks
        if kept is None:
            return Msg(name, as_content(blocks), role, metadata=keys)
        return Msg(name, as_content(kept), role)

    def _answer(self, held: dict[str, Any], place: str) -> Msg:
        """A result, its message's further keys on its output."""
        result = self._result(held, place)
        keys = further_keys(held, ())
        items = [TextBlock(result.output)] if isinstance(result.output, str) else [*result.output]
        kept = with_keys(items, keys, self.issuer) if keys else None
        if kept is None:
            return Msg("tool", [result], "system", metadata=keys or None)
        return Msg("tool", [replace(result, output=tuple(kept))], "system")

    def _unread(self, entry: object, reason: str, place: str) -> Msg:
        return Msg("unknown", [invalid(entry, reason, place)], "user")

    def _result(self, held: dict[str, Any], place: str) -> ToolResultBlock:
        name = as_text(held.get("name"))
        id = as_text(held.get("tool_call_id"))
        if held["role"] == "function" and not id:
            id = self.legacy.get(name, "")
        output = read_output(held.get("content"), self.origin, f"{place}.content")
        return ToolResultBlock(id, name or self.names.get(id, ""), output)

    def _assistant(self, held: dict[str, Any], place: str) -> list[Block]:
        """Reasoning, text, refusal, sound, then calls, as a reply has them."""
        blocks: list[Block] = _signed_thoughts(held.get("thinking_blocks")) or self._thoughts(held)
        said = read_content(held.get("content"), self.origin, f"{place}.content")
        blocks += cited(said, held.get("annotations"))
        if refusal := as_text(held.get("refusal")):
            blocks.append(refusal_block(refusal, OpaqueState(self.issuer, fields=REFUSAL_FIELD)))
        if audio := as_object(held.get("audio")):
            blocks.append(self._sound(audio))
        for at, entry in enumerate(as_list(held.get("tool_calls"))):
            blocks.append(self._call(entry, f"{place}.tool_calls[{at}]"))
        if any((legacy := as_object(held.get("function_call"))).values()):
            blocks.append(self._legacy_call(legacy, place))
        return blocks

    def _thoughts(self, held: dict[str, Any]) -> list[Block]:
        thoughts = (as_text(held.get(field)) for field in self.vendor.reasoning_fields)
        thought = next(filter(None, thoughts), "")
        details = as_list(held.get(DETAILS)) if self.vendor.reasoning_details else []
        if details:
            state = OpaqueState(self.issuer, fields={DETAILS: details})
            return [ThinkingBlock(thought or details_text(details), state)]
        return [ThinkingBlock(thought, OpaqueState(self.issuer))] if thought else []

    def _sound(self, audio: dict[str, Any]) -> Block:
        """A reply's sound; of one that a request names by its id alone, nothing but the server has."""
        sound = AudioBuffer()
        sound.take(audio)
        block, words = sound.block(None), sound.transcript
        if block is not None:
            return replace(block, state=OpaqueState(self.issuer, **sound.state)) if sound.state else block
        return TextBlock(words) if words else OpaqueBlock(self.origin.wire, {"audio": audio})

    def _call(self, entry: object, place: str) -> Block:
        held = as_object(entry)
        custom = as_object(held.get("custom")) if not held.get("function") else {}
        said = custom or as_object(held.get("function"))
        if not said:
            return invalid(entry, "it is no call", place)
        id, name = as_text(held.get("id")), as_text(said.get("name"))
        self.names[id] = name
        if custom:
            state = OpaqueState(self.issuer, fields=CUSTOM_CALL)
            return ToolUseBlock(id, name, custom_input(as_text(said.get("input"))), state=state)
        return _function_call(id, name, said.get("arguments"), place)

    def _legacy_call(self, said: dict[str, Any], place: str) -> Block:
        """A call of before there were ids: one that its result, which names the function, is given too."""
        name = as_text(said.get("name"))
        id = derive_call_id(repr((place, name, said.get("arguments"))))
        self.legacy[name] = id
        self.names[id] = name
        return _function_call(id, name, said.get("arguments"), place)


def _signed_thoughts(found: object) -> list[Block]:
    """The thinking of Anthropic's models in LiteLLM's replies (litellm: ChatCompletionThinkingBlock)."""
    blocks: list[Block] = []
    for held in map(as_object, as_list(found)):
        if held.get("type") == "thinking":
            state = OpaqueState("anthropic", signature=as_text(held.get("signature")) or None)
            blocks.append(ThinkingBlock(as_text(held.get("thinking")), state))
        elif held.get("type") == "redacted_thinking":
            blocks.append(
                ThinkingBlock("", OpaqueState("anthropic", redacted_data=as_text(held.get("data")) or None))
            )
    return blocks


def _function_call(id: str, name: str, arguments: object, place: str) -> Block:
    given, raw = read_arguments(arguments)
    try:
        return ToolUseBlock(id, name, given, raw)
    except MessageError as error:
        return invalid(arguments, str(error), place)
