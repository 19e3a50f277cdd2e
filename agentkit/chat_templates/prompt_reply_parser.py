"""`PromptReplyParser`: base class of parsers for APIs that continue the text of a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Unpack

from agentkit.json_values import as_text
from agentkit.messages.usage import FinishReason
from agentkit.replies.parser import ParserOptions, StreamParserBase

if TYPE_CHECKING:
    from agentkit.chat_templates.responses.response_template import ResponseTemplate
    from agentkit.tools.tool import ToolLike

__all__ = ["PromptReplyParser"]

_TEXT: Final = (0,)


class PromptReplyParser(StreamParserBase):
    """Base class of parsers for APIs that continue the text of a prompt.

    The replies of these APIs contain only text. With a response template, the parser reads thinking and tool calls
    from the text. Without a response template, the text is the content of the message.

    A subclass implements `read_event` and `read_reply`. These methods pass each piece of the text to `add_text`,
    and the finish reason to `end_text`.

    Args:
        response_template: Format of the replies: a `ResponseTemplate`, its declaration, or the name of a built-in
            response template. None means plain text. See `ChatTemplateFormatter.get_parser_options`.
        tools: Tools that the request declares. The parser converts string arguments to the types in the schemas of
            the tools.
        **options: See `ParserOptions`.

    Raises:
        OptionError: An option is invalid, or the prompt of the request does not contain the `start_anchor` of the
            response template.
        MissingExtraError: The package regex is not installed, but there is a response template.
    """

    raw_arguments = True

    def __init__(
        self,
        *,
        response_template: ResponseTemplate | Mapping[str, Any] | str | None = None,
        tools: Sequence[ToolLike] = (),
        **options: Unpack[ParserOptions],
    ) -> None:
        super().__init__(**options)
        prompt = as_text((self.request or {}).get(self.layout.turns))
        self._reader = None
        if response_template is not None:
            from agentkit.chat_templates.template_arguments import find_response_template

            template = find_response_template(response_template)
            self._reader = template.reader(self.reply, prompt=prompt, tools=tools)
        self._has_text_ended = False

    def add_text(self, piece: object) -> None:
        """Adds a piece of the text that the model wrote. Ignores a value that is not a string.

        The text may end with half of a surrogate pair, because the next piece can have the other half.
        """
        if not isinstance(piece, str):
            return
        if self._reader is None or self._has_text_ended:
            if piece:
                self.reply.add_text(_TEXT, piece)
        else:
            self._reader.feed(piece)

    def end_text(self, reason: FinishReason, native: str | None = None) -> None:
        """Ends the reply with a finish reason. `native` is the finish reason in the spelling of the API."""
        self._finish_text()
        self.reply.end(reason, native)

    def close(self) -> None:
        """Adds the text that is still buffered, if the stream ended without a finish reason."""
        self._finish_text()

    def _finish_text(self) -> None:
        if self._reader is not None and not self._has_text_ended:
            self._reader.finish()
        self._has_text_ended = True
