"""`PromptReplyParser`: base class of parsers for APIs that continue the text of a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Unpack

from agentkit.messages.usage import FinishReason
from agentkit.replies.parser import ParserOptions, StreamParserBase

__all__ = ["PromptReplyParser"]

_TEXT: Final = (0,)


class PromptReplyParser(StreamParserBase):
    """Base class of parsers for APIs that continue the text of a prompt.

    The replies of these APIs have only text. If the model has a response template, the parser reads thinking and
    tool calls from the text. Without one, the text is the content of the message.

    A subclass implements `read_event` and `read_reply`. It passes each piece of the text to `add_text`, and the
    finish reason to `end_text`.

    Args:
        response_template: Form of the replies. None means plain text. `ChatTemplateFormatter` passes this option.
        tools: Tools that the request declares. Their schemas decide the types of arguments.
        **options: See `ParserOptions`.
    """

    raw_arguments = True

    def __init__(
        self, *, response_template: Any = None, tools: Sequence[Any] = (), **options: Unpack[ParserOptions]
    ) -> None:
        super().__init__(**options)

    def add_text(self, piece: str) -> None:
        """Adds a piece of the text that the model wrote."""
        if piece:
            self.reply.add_text(_TEXT, piece)

    def end_text(self, reason: FinishReason, native: str | None = None) -> None:
        """Ends the reply. `native` is the finish reason as the API spells it."""
        self.reply.end(reason, native)
