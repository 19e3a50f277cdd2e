"""Parser for complete and streamed replies of Anthropic (Anthropic SDK: Message, RawMessageStreamEvent)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    OpaqueBlock,
    ParserOptions,
    StreamParserBase,
    Usage,
    as_list,
    as_object,
    as_text,
    as_token_count,
    list_keys,
    reported_error,
)
from agentkit_anthropic._parts import ServerPart, carried
from agentkit_anthropic.capabilities import LAYOUT

__all__ = ["AnthropicStreamParser", "parse_response"]

_REASONS = {
    # Source of the stop reasons: Anthropic SDK, StopReason and BetaStopReason.
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_USE,
    "pause_turn": FinishReason.PAUSE,
    "compaction": FinishReason.PAUSE,
    "refusal": FinishReason.REFUSAL,
}

_CUTTING_REASONS = frozenset({FinishReason.LENGTH, FinishReason.REFUSAL})
"""Finish reasons of replies whose last tool call may be incomplete."""

_NOTE_KEYS = ("stop_sequence", "stop_details", "context_management", "input_transformations", "diagnostics")
"""Keys of a reply whose values the parser copies to the metadata of the message."""


class AnthropicStreamParser(StreamParserBase):
    """Parser for complete and streamed replies from `messages.create` and `beta.messages.create`.

    The SDK's `stream` helper adds the events `text`, `thinking`, `signature`, `citation` and `input_json` to the
    API's events. The parser ignores the added events, because they repeat content.
    """

    provider = "anthropic"
    issuer = "anthropic"
    layout = LAYOUT
    binds_thinking = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._usage: dict[str, Any] = {}
        self._start_counts: dict[int, int] = {}  # number of blocks that have started at each block index
        # Each dict maps the block index of an open block to its key in `self.reply`, or to its `ServerPart`.
        self._texts: dict[int, tuple[int, int]] = {}
        self._thoughts: dict[int, tuple[int, int]] = {}
        self._calls: dict[int, tuple[int, int]] = {}
        self._server: dict[int, ServerPart] = {}
        self._inputs: dict[int, Any] = {}  # `input` in the start event of each open tool call, by block index
        # Key of a tool call that has ended without arguments. The call is closed when the next block starts.
        self._empty_call: tuple[int, int] | None = None
        self._citations: dict[int, list[Any]] = {}

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the content of a complete reply to `self.reply`.

        Raises:
            MessageError: The value is an error from the provider, or is not a reply in Anthropic's format.
        """
        error = as_object(reply.get("error"))
        if reply.get("type") == "error" or (error and "content" not in reply):
            text = f"{as_text(error.get('message')) or 'no message'} ({as_text(error.get('type')) or 'no type'})"
            raise reported_error(text)
        if not isinstance(reply.get("content"), list) and reply.get("type") != "message":
            reason = f"expected a `Message` object in which `content` is a list, got {list_keys(reply)}"
            raise MessageError("reply", reason, "Pass the result of messages.create.")
        self._begin(reply)
        for index, block in enumerate(as_list(reply.get("content"))):
            self._start(index, as_object(block))
            self._stop(index)
        self._end(reply)

    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the content of one stream event to `self.reply`."""
        event_type, index = event.get("type"), event.get("index")
        if event_type == "content_block_delta" and type(index) is int:
            self._delta(index, as_object(event.get("delta")))
        elif event_type == "content_block_start" and type(index) is int:
            self._start(index, as_object(event.get("content_block")))
        elif event_type == "content_block_stop" and type(index) is int:
            self._stop(index)
        elif event_type == "message_start":
            self._begin(as_object(event.get("message")))
        elif event_type == "message_delta":
            self._read_end(event)
        elif event_type == "message_stop":
            self.is_complete = True
            self._end({})
        elif event_type == "error" or (event_type is None and "error" in event):  # some gateways omit `type`
            error = as_object(event.get("error"))
            self.reply.fail(as_text(error.get("message")), as_text(error.get("type")) or None)

    def close(self) -> None:
        """Completes the message of an interrupted reply.

        Incomplete blocks that Anthropic's server creates, such as server tool calls, become metadata.
        """
        for index in [*self._citations]:
            self._close_citations(index)
        for _, part in sorted(self._server.items()):
            self._note_incomplete(part)

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        delta_type = delta.get("type")
        if delta_type == "text_delta":
            key, piece = self._texts.get(index) or self._start_missing(index, "text"), delta.get("text")
            if key and isinstance(piece, str):
                self.reply.add_text(key, piece)
        elif index in self._server:
            self._server[index].read(delta)
        elif delta_type == "input_json_delta":
            key, piece = self._calls.get(index), delta.get("partial_json")
            if key and isinstance(piece, str):
                self.reply.add_tool_call(key, piece=piece)
        elif delta_type == "thinking_delta":
            key, piece = self._thoughts.get(index) or self._start_missing(index, "thinking"), delta.get("thinking")
            if key and isinstance(piece, str):
                self.reply.add_thinking(key, piece)
        elif delta_type == "signature_delta" and index in self._thoughts:
            self.reply.add_state(self._thoughts[index], signature=as_text(delta.get("signature")) or None)
        elif delta_type == "citations_delta" and index in self._texts and as_object(delta.get("citation")):
            self._citations.setdefault(index, []).append(delta["citation"])

    def _start_missing(self, index: int, block_type: str) -> tuple[int, int] | None:
        """Starts a block whose start event is missing, and returns the key of the block.

        Returns None if another block has already started at the index.
        """
        if index in self._start_counts:
            return None
        self._start(index, {"type": block_type})
        return self._texts.get(index) or self._thoughts.get(index)

    def _start(self, index: int, block: dict[str, Any]) -> None:
        self._stop(index)
        self._close_empty_call()
        count = self._start_counts.get(index, 0)
        key = (index, count)  # the count makes the key unique, because some servers use index 0 for every block
        block_type = as_text(block.get("type"))
        if block_type:
            self._start_counts[index] = count + 1
        if block_type == "text":
            self._texts[index] = key
            self.reply.add_text(key, as_text(block.get("text")))
            self._citations[index] = [*as_list(block.get("citations"))]
        elif block_type == "thinking":
            self._thoughts[index] = key
            self.reply.add_thinking(key, as_text(block.get("thinking")))
            self.reply.add_state(key, signature=as_text(block.get("signature")) or None)
        elif block_type == "redacted_thinking":
            self.reply.add_thinking(key, "")
            self.reply.add_state(key, redacted_data=as_text(block.get("data")) or None)
        elif block_type == "tool_use":
            self._calls[index] = key
            self._inputs[index] = block.get("input")
            self.reply.add_tool_call(key, block.get("id"), block.get("name"))
            self.reply.add_state(key, fields=carried(block_type, block) or None)
        elif block_type:
            self._server[index] = ServerPart(block)

    def _stop(self, index: int) -> None:
        if key := self._texts.pop(index, None) or self._thoughts.pop(index, None):
            self._close_citations(index, key)
            self.reply.close(key)
        elif key := self._calls.pop(index, None):
            arguments = self._inputs.pop(index, None)
            if arguments and not self.reply.get_arguments(key):
                self.reply.replace_arguments(key, arguments)
            if arguments or self.reply.get_arguments(key).strip() not in ("", "{}"):
                self.reply.close(key)
            else:
                self._empty_call = key
        elif part := self._server.pop(index, None):
            data = part.build()
            if data is None:
                self._note_incomplete(part)
            else:
                self.reply.add_block((index, self._start_counts[index] - 1), OpaqueBlock("anthropic", data))

    def _close_empty_call(self, *, cut: bool = False) -> None:
        """Closes the last tool call if it has no arguments.

        The parser calls this method when another block starts or when the reply ends.

        Args:
            cut: True if the reply was cut off. The call is then marked as incomplete, because its arguments may be
                missing (Anthropic docs: handling-stop-reasons).
        """
        if self._empty_call is not None:
            if cut:
                self.reply.add_metadata(self._empty_call, incomplete=True)
            self.reply.close(self._empty_call)
            self._empty_call = None

    def _close_citations(self, index: int, key: tuple[int, int] | None = None) -> None:
        """Adds citations to the metadata and opaque state of a text block. Later requests contain the state."""
        citations = self._citations.pop(index, None)
        key = key or self._texts.get(index)
        if citations and key:
            self.reply.add_metadata(key, citations=citations)
            self.reply.add_state(key, fields={"citations": citations})

    def _note_incomplete(self, part: ServerPart) -> None:
        self.reply.notes.setdefault("incomplete_parts", []).append(part.build_incomplete())

    def _begin(self, message: dict[str, Any]) -> None:
        self.reply.begin(message.get("id"), message.get("model"))
        self._note(message)
        self._use(message.get("usage"))

    def _read_end(self, event: dict[str, Any]) -> None:
        delta = as_object(event.get("delta"))
        self._note(event)
        self._note(delta)
        self._use(event.get("usage"))
        if delta.get("stop_reason") is not None:
            self._end(delta)

    def _end(self, fields: dict[str, Any]) -> None:
        native = as_text(fields.get("stop_reason"))
        for index in [*self._texts, *self._thoughts, *self._calls, *self._server]:
            self._stop(index)
        reason = _REASONS.get(native, FinishReason.OTHER)
        self._close_empty_call(cut=reason in _CUTTING_REASONS)
        self.reply.end(reason, native or None)

    def _note(self, fields: Mapping[str, Any]) -> None:
        self.reply.notes |= {key: fields[key] for key in _NOTE_KEYS if fields.get(key) is not None}
        if container := as_object(fields.get("container")):
            expiry = _normalize_time(container.get("expires_at"))
            self.reply.notes["container"] = {**container, "expires_at": expiry}

    def _use(self, usage: object) -> None:
        """Updates the token counts with the totals in an event. Counts that the event omits stay unchanged."""
        counts = {key: item for key, item in as_object(usage).items() if item is not None}
        if not counts:
            return
        self._usage |= counts
        self.reply.set_usage(_parse_usage(self._usage))
        if served := as_object(self._usage.get("server_tool_use")):
            self.reply.notes["server_tool_use"] = served


def _parse_usage(fields: Mapping[str, Any]) -> Usage:
    """Returns the usage of a reply. The field `input_tokens` includes the tokens of the prompt cache.

    The API's `input_tokens` exclude tokens that are read from or written to the cache (Anthropic SDK: Usage).
    """
    read = as_token_count(fields.get("cache_read_input_tokens"))
    written = as_token_count(fields.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=as_token_count(fields.get("input_tokens")) + written + read,
        output_tokens=as_token_count(fields.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=as_token_count(as_object(fields.get("output_tokens_details")).get("thinking_tokens")),
    )


def _normalize_time(value: object) -> str | None:
    """Returns a time in Python's ISO format, because SDK objects and the API can write the same time differently.

    Returns a string that is not a time unchanged. Returns None for an empty string, and for any other value.
    """
    try:
        return datetime.fromisoformat(as_text(value)).isoformat()
    except ValueError:
        return as_text(value) or None


parse_response = AnthropicStreamParser.parse_response
