"""`ResponseStreamParser`: parser of the text of a model's reply, complete or in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from agentkit.chat_templates.responses.response_reader import ResponseReader
from agentkit.errors import MessageError
from agentkit.json_values import as_text
from agentkit.messages.usage import FinishReason
from agentkit.replies.events import StreamEvent
from agentkit.replies.parser import ParserOptions, StreamParserBase
from agentkit.reprs import describe_value
from agentkit.tools.tool import ToolLike

if TYPE_CHECKING:
    from agentkit.chat_templates.responses.response_template import ResponseTemplate

__all__ = ["ResponseStreamParser"]


class ResponseStreamParser(StreamParserBase):
    """Parser of the text that a model wrote. `ResponseTemplate.stream_parser` returns such a parser.

    `feed` accepts pieces of the text, or dicts with the key `text`. `finish` ends the reply, so no final event is
    needed. If the text ends inside thinking, or inside a tool call with incomplete arguments, the finish reason is
    `interrupted`.

    Args:
        template: Response template of the model.
        prompt: Prompt that the model continued. The prompt can end with the start of the reply, such as `<think>`.
        tools: Tools that the request declared. The parser converts string arguments to the types in the schemas of
            the tools.
        **options: See `ParserOptions`.

    Raises:
        OptionError: An option is invalid, or the prompt does not contain the `start_anchor` of the template.
    """

    provider = "chat_template"
    issuer = "chat_template"
    raw_arguments = True

    def __init__(
        self,
        template: ResponseTemplate,
        *,
        prompt: str = "",
        tools: Sequence[ToolLike] = (),
        **options: Unpack[ParserOptions],
    ) -> None:
        super().__init__(**options)
        self._reader: ResponseReader = template.reader(self.reply, prompt=prompt, tools=tools)

    def feed(self, chunk: object) -> list[StreamEvent]:
        """Parses the next piece of the text. Returns the events that are complete after this piece.

        Raises:
            MessageError: The piece is neither a string nor a dict, or `finish` was called before.
        """
        if isinstance(chunk, str) and self._msg is None:
            self._reader.feed(chunk)
            return self.reply.drain()
        if isinstance(chunk, bytes | bytearray | memoryview):
            reason = f"expected a string, got {describe_value(cast('object', chunk))}"
            raise MessageError("chunk", reason, "Decode the bytes first.")
        return super().feed(chunk)

    def read_event(self, event: dict[str, Any]) -> None:
        """Reads a piece of a reply: the value of the key `text`."""
        self._reader.feed(as_text(event.get("text")))

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Reads a whole reply: the value of the key `text`."""
        self.read_event(reply)

    def close(self) -> None:
        """Processes the end of the text, and ends a complete reply with the finish reason `stop`."""
        self._reader.finish()
        if not self._reader.is_cut_off:
            self.reply.end(FinishReason.STOP)
