"""`ReplyBuilder`: assembles a reply from pieces, and creates the events that report each step.

Idea
    The parser of a provider translates native events into a few method calls: add a piece, close a block, end the
    reply. Each piece has the key of its block, which is a tuple of integers. A block begins with its first piece.
    Events number the blocks in the order in which the blocks begin. In the message, the blocks are sorted by key.
    So a provider may send pieces of several blocks in any order. Parsers call the same methods for a complete
    reply.

    The pieces of a text are joined once, at the end. Argument text is parsed at growing intervals, so that long
    arguments take little time. See the module `arguments`.

Invariants
    - A stream and a complete reply with the same content give equal messages, even if the stream is split within a
      character. If a piece ends with half of a surrogate pair, the builder stores this half until the other half
      arrives.
    - A closed block accepts no more pieces, and an ended reply accepts no more blocks. Text that arrives later is
      never part of the message. The metadata of the message records this text under `behind_end`.
    - Every block that begins ends exactly once. The exception is a tool call that is incomplete when the stream
      breaks off. Only a `UsageEvent` may follow `MessageEnd`.
    - `message` returns a message even if the stream broke off. The finish reason of this message is `interrupted`
      or `error`.
    - If a provider sends the id, the model or a tool name again, the first value is used. If a provider sends the
      usage or an opaque state again, the last value is used.

Cost
    The time to add a piece is constant. The time to build the message is proportional to the length of the reply.

Example:
    OpenAI-compatible servers can alternate the pieces of two blocks. Here the tool call begins before the text.
    But the message begins with the text, because the key of the text is smaller:

    >>> builder = ReplyBuilder(
    ...     name="Friday", provider="demo", issuer="demo", request=None, tool_names={}, raw_arguments=False,
    ...     layout=WireLayout(),
    ... )
    >>> builder.add_tool_call((1, 0), id="c1", name="search", piece='{"q": ')
    >>> builder.add_text((0, 0), "Let me look")
    >>> builder.add_tool_call((1, 0), piece='"cats"}')
    >>> builder.add_text((0, 0), " that up.")
    >>> builder.end(FinishReason.STOP)
    >>> [event.type for event in builder.drain()]  # doctest: +NORMALIZE_WHITESPACE
    ['message-start', 'tool-use-start', 'tool-use-delta', 'text-start', 'text-delta', 'tool-use-delta',
     'text-delta', 'tool-use-end', 'text-end', 'message-end']
    >>> msg = builder.message()
    >>> msg.blocks[0].text, msg.blocks[1].input, str(msg.finish_reason)
    ('Let me look that up.', {'q': 'cats'}, 'tool_use')

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentkit.capabilities.wire_layout import WireLayout
from agentkit.json_values import as_text, make_json_safe
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason, Usage
from agentkit.replies.block_builder import BlockBuilder
from agentkit.replies.events import ErrorEvent, MessageEnd, ToolUseStart, UsageEvent
from agentkit.replies.partial_blocks import PartialText, PartialToolCall
from agentkit.replies.reply_blocks import ReplyBlocks

__all__ = ["ReplyBuilder"]


class ReplyBuilder(ReplyBlocks):
    """Builder of one reply. The parser of a provider passes each piece of the reply to the builder.

    Attributes:
        name: Speaker of the message.
        provider: Name of the provider.
        id: Id of the reply. None until the id arrives.
        model: Name of the model that wrote the reply. None until the name arrives.
        usage: Latest token counts from the provider. None before the first report.
        finish_reason: Finish reason of the reply. None until the reply ends.
        native_reason: Finish reason as the provider spells it. None until the reply ends.
        error: Error that the provider reported. The keys are `message`, `code`, `request_id`, `status` and
            `retry_after`. Keys without a value are omitted. None if there is no error.
        notes: Further metadata of the reply, such as `safety_ratings`.
    """

    def __init__(
        self,
        *,
        name: str,
        provider: str,
        issuer: str,
        request: Mapping[str, Any] | None,
        tool_names: Mapping[str, str],
        raw_arguments: bool,
        layout: WireLayout,
        binds_thinking: bool = False,
        redact: Callable[[str], str] = str,
    ) -> None:
        blocks = BlockBuilder(
            issuer=issuer,
            request=request,
            raw_arguments=raw_arguments,
            layout=layout,
            binds_thinking=binds_thinking,
        )
        super().__init__(blocks, tool_names)
        self.name = name
        self.provider = provider
        self.usage: Usage | None = None
        self.native_reason: str | None = None
        self.error: dict[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        self._redact = redact

    def set_usage(self, usage: Usage) -> None:
        """Replaces the token counts of the reply with the latest counts from the provider."""
        if usage != self.usage:
            self.usage = usage
            self._events.append(UsageEvent(usage))

    def end(self, reason: FinishReason, native: str | None = None) -> None:
        """Ends the reply and closes all open blocks. Further calls of `end` have no effect."""
        if self.finish_reason is not None:
            return
        for key in self._partials:
            self.close(key)
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self.has_calls:
            reason = FinishReason.TOOL_USE
        self.begin()
        self.finish_reason, self.native_reason = reason, native
        self._events.append(MessageEnd(reason, native))

    def fail(
        self, message: str, code: str | None = None, request_id: str | None = None, **details: float | None
    ) -> None:
        """Records an error that the provider reported. Blocks that are still open remain incomplete.

        `details` can contain the HTTP status (`status`) and the waiting time in seconds (`retry_after`).
        """
        message = self._redact(as_text(message)) or "the error has no message"
        code = self._redact(as_text(code)) or None
        fields: dict[str, Any] = {"code": code, "request_id": self._redact(as_text(request_id)), **details}
        present = {name: value for name, value in fields.items() if value not in ("", None)}
        self.error = {"message": message, **present}
        if self.finish_reason is None:
            self.begin()
            self._events.append(ErrorEvent(message, code))

    @property
    def has_calls(self) -> bool:
        """True if at least one tool call has begun in the reply."""
        return any(isinstance(partial, PartialToolCall) for partial in self._partials.values())

    def message(self) -> Msg:
        """Returns a message with the part of the reply that has arrived.

        If the reply has not ended, the finish reason is `error` after a reported error, and `interrupted`
        otherwise.
        """
        partials = self._partials
        for partial in partials.values():
            if not partial.closed:
                self._add_half(partial)
        blocks = tuple(block for key in sorted(partials) for block in self._blocks.build(partials[key]))
        if self.finish_reason is None:
            self.begin()
            self.finish_reason = FinishReason.ERROR if self.error else FinishReason.INTERRUPTED
            self._end_open_blocks()
            self._events.append(MessageEnd(self.finish_reason, self.native_reason))
        return Msg(self.name, blocks, "assistant", metadata={"reply": self._metadata()})

    def _end_open_blocks(self) -> None:
        """Adds end events for open text blocks.

        Open tool calls get no end event, because they are incomplete. If an argument text contains several calls,
        start events are added for the calls after the first.
        """
        for partial in [partial for partial in self._partials.values() if not partial.closed]:
            if isinstance(partial, PartialText):
                self._events.append(partial.end(partial.index, partial.text))
            elif isinstance(partial, PartialToolCall):
                further = partial.blocks[1:]
                self._events += [ToolUseStart(self._next_index(), block.id, block.name) for block in further]

    def _metadata(self) -> dict[str, Any]:
        optional = {
            "native_finish_reason": self.native_reason,
            "id": self.id,
            "model": self.model,
            "usage": self.usage.to_dict() if self.usage else None,
            "error": self.error,
            "behind_end": as_text("".join(self._late)) or None,
            **make_json_safe(self.notes),
        }
        present = {name: value for name, value in optional.items() if value is not None}
        return {"provider": self.provider, "finish_reason": str(self.finish_reason), **present}
