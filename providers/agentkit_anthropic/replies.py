"""Anthropic's replies, whole and streamed (SDK: Message, RawMessageStreamEvent and their beta siblings)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Unpack, cast

from agentkit.provider_kit import (
    FinishReason,
    Msg,
    OpaqueBlock,
    ParserOptions,
    StreamParserBase,
    WireLayout,
    as_list,
    as_object,
    as_text,
)
from agentkit_anthropic._parts import carried
from agentkit_anthropic._reply_fields import as_finish_reason, check_reply, parse_usage
from agentkit_anthropic._server_parts import ServerPart
from agentkit_anthropic.capabilities import LAYOUT

__all__ = ["AnthropicStreamParser", "parse_response"]

_CUTTING = frozenset({FinishReason.LENGTH, FinishReason.REFUSAL})
"""The ends that may come in the middle of a call."""

_NOTED = ("stop_sequence", "stop_details", "context_management", "input_transformations", "diagnostics")
"""What else a reply says of itself."""


class AnthropicStreamParser(StreamParserBase):
    """Reads the replies of `messages.create`, whole or streamed, and of its beta sibling.

    The events that the SDK's `stream` helper adds to the API's own (`text`, `thinking`, `signature`, `citation`,
    `input_json`) say nothing new and are passed over.
    """

    provider: ClassVar[str] = "anthropic"
    issuer: ClassVar[str] = "anthropic"
    layout: ClassVar[WireLayout] = LAYOUT
    binds_thinking: ClassVar[bool] = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._usage: dict[str, Any] = {}
        self._begun: dict[int, int] = {}  # how often a block began under an index
        # The blocks that are open, by index: each in the table of its kind, under its key.
        self._texts: dict[int, tuple[int, int]] = {}
        self._thoughts: dict[int, tuple[int, int]] = {}
        self._calls: dict[int, tuple[int, int]] = {}
        self._server: dict[int, ServerPart] = {}
        self._inputs: dict[int, Any] = {}  # what a call began with
        self._bare: tuple[int, int] | None = None  # a call without arguments, until it is known what comes next
        self._cited: dict[int, list[Any]] = {}

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Read a Message."""
        check_reply(reply)
        self._begin(reply)
        for index, block in enumerate(as_list(reply.get("content"))):
            self._start(index, as_object(block))
            self._stop(index)
        self._end(reply)

    def read_event(self, event: dict[str, Any]) -> None:
        """Read one event of a stream."""
        kind = event.get("type")
        if kind == "content_block_delta":
            index, delta = event.get("index"), event.get("delta")
            if type(index) is int and isinstance(delta, dict):
                self._delta(index, cast("dict[str, Any]", delta))
        elif kind == "content_block_start":
            if type(index := event.get("index")) is int:
                self._start(index, as_object(event.get("content_block")))
        elif kind == "content_block_stop":
            if type(index := event.get("index")) is int:
                self._stop(index)
        elif kind == "message_start":
            self._begin(as_object(event.get("message")))
        elif kind == "message_delta":
            self._read_end(event)
        elif kind == "message_stop":
            self.is_complete = True
            self._end({})
        elif kind == "error" or (kind is None and "error" in event):  # some gateways leave the type off
            error = as_object(event.get("error"))
            self.reply.fail(as_text(error.get("message")), as_text(error.get("type")) or None)

    def close(self) -> None:
        """What broke off: a server tool's use asks nothing any more, and is kept beside the message."""
        for index in [*self._cited]:
            self._settle_citations(index)
        for _, part in sorted(self._server.items()):
            self._note_cut(part)

    # -- blocks ------------------------------------------------------------------------------------------------

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta":
            key, piece = self._texts.get(index) or self._missed(index, "text"), delta.get("text")
            if key and isinstance(piece, str):
                self.reply.add_text(key, piece)
        elif index in self._server:
            self._server[index].read(delta)
        elif kind == "input_json_delta":
            key, piece = self._calls.get(index), delta.get("partial_json")
            if key and isinstance(piece, str):
                self.reply.add_tool_call(key, piece=piece)
        elif kind == "thinking_delta":
            key, piece = self._thoughts.get(index) or self._missed(index, "thinking"), delta.get("thinking")
            if key and isinstance(piece, str):
                self.reply.add_thinking(key, piece)
        elif kind == "signature_delta" and index in self._thoughts:
            self.reply.add_state(self._thoughts[index], signature=as_text(delta.get("signature")) or None)
        elif kind == "citations_delta" and index in self._texts and (found := as_object(delta.get("citation"))):
            self._cited.setdefault(index, []).append(found)

    def _missed(self, index: int, kind: str) -> tuple[int, int] | None:
        """The key of a block whose beginning never came; None if another kind of block stands there."""
        if index in self._begun:
            return None
        self._start(index, {"type": kind})
        return self._texts.get(index) or self._thoughts.get(index)

    def _start(self, index: int, block: dict[str, Any]) -> None:
        self._stop(index)
        self._close_bare()
        times = self._begun.get(index, 0)
        key = (index, times)  # some servers begin every block at 0
        kind = as_text(block.get("type"))
        if kind:
            self._begun[index] = times + 1
        if kind == "text":
            self._texts[index] = key
            self.reply.add_text(key, as_text(block.get("text")))
            self._cited[index] = [*as_list(block.get("citations"))]
        elif kind == "thinking":
            self._thoughts[index] = key
            self.reply.add_thinking(key, as_text(block.get("thinking")))
            self.reply.add_state(key, signature=as_text(block.get("signature")) or None)
        elif kind == "redacted_thinking":
            self.reply.add_thinking(key, "")
            self.reply.add_state(key, redacted_data=as_text(block.get("data")) or None)
        elif kind == "tool_use":
            self._calls[index] = key
            self._inputs[index] = block.get("input")
            self.reply.add_tool_call(key, block.get("id"), block.get("name"))
            self.reply.add_state(key, fields=carried(kind, block) or None)
        elif kind:
            self._server[index] = ServerPart(block)

    def _stop(self, index: int) -> None:
        if key := self._texts.pop(index, None) or self._thoughts.pop(index, None):
            self._settle_citations(index, key)
            self.reply.close(key)
        elif key := self._calls.pop(index, None):
            given = self._inputs.pop(index, None)
            if given and not self.reply.get_arguments(key):
                self.reply.replace_arguments(key, given)
            if given or self.reply.get_arguments(key).strip() not in ("", "{}"):
                self.reply.close(key)
            else:
                self._bare = key
        elif part := self._server.pop(index, None):
            whole = part.build()
            if whole is None:
                self._note_cut(part)
            else:
                self.reply.add_block((index, self._begun[index] - 1), OpaqueBlock("anthropic", whole))

    def _close_bare(self, *, cut: bool = False) -> None:
        """A call without arguments is complete once something follows it, or an end that cuts nothing off.

        Behind `max_tokens` its arguments may be what is missing (handling-stop-reasons: an incomplete tool_use).
        """
        if self._bare is not None:
            if cut:
                self.reply.add_metadata(self._bare, incomplete=True)
            self.reply.close(self._bare)
            self._bare = None

    def _settle_citations(self, index: int, key: tuple[int, int] | None = None) -> None:
        """Citations are told with their text, and go back with it."""
        cited = self._cited.pop(index, None)
        key = key or self._texts.get(index)
        if cited and key:
            self.reply.add_metadata(key, citations=cited)
            self.reply.add_state(key, fields={"citations": cited})

    def _note_cut(self, part: ServerPart) -> None:
        self.reply.notes.setdefault("incomplete_parts", []).append(part.build_incomplete())

    # -- the reply as a whole ----------------------------------------------------------------------------------

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

    def _end(self, found: dict[str, Any]) -> None:
        native = as_text(found.get("stop_reason"))
        for index in [*self._texts, *self._thoughts, *self._calls, *self._server]:
            self._stop(index)
        reason = as_finish_reason(native)
        self._close_bare(cut=reason in _CUTTING)
        self.reply.end(reason, native or None)

    def _note(self, found: Mapping[str, Any]) -> None:
        self.reply.notes |= {key: found[key] for key in _NOTED if found.get(key) is not None}
        if container := as_object(found.get("container")):
            self.reply.notes["container"] = {**container, "expires_at": _moment(container.get("expires_at"))}

    def _use(self, found: object) -> None:
        """The figures add nothing up: each is the whole so far, and one that is left out stays as it was."""
        told = {key: item for key, item in as_object(found).items() if item is not None}
        if not told:
            return
        self._usage |= told
        self.reply.set_usage(parse_usage(self._usage))
        if served := as_object(self._usage.get("server_tool_use")):
            self.reply.notes["server_tool_use"] = served


def _moment(found: object) -> str | None:
    """A time in one spelling: the SDK writes it anew."""
    try:
        return datetime.fromisoformat(as_text(found)).isoformat()
    except ValueError:
        return as_text(found) or None


def parse_response(reply: object, **options: Unpack[ParserOptions]) -> Msg:
    """A Message of Anthropic's, as the SDK's object, its dict or JSON text, as a message of ours.

    Raises MessageError for what is none, the provider's error included.
    """
    return AnthropicStreamParser.parse_response(reply, **options)
