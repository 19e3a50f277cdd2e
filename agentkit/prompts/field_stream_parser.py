"""`FieldStreamParser`: base class of the parsers that find the outputs in the text of a streamed reply.

Parsers perform no I/O. `chat_stream_parser` is an example of a parser that returns events while the text arrives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError, ParseError
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.chat_adapter import parse_field
from agentkit.prompts.field_content import write_content
from agentkit.prompts.field_events import FieldDelta, FieldEnd, FieldEvent, FieldStart
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.signature import Signature

__all__ = ["FieldStreamParser"]

_AnySignature: TypeAlias = type[Signature[Any]]
_OWN_TEXT: Final = object()


class FieldStreamParser:
    """Parser of the text of a streamed reply. One parser object parses one reply.

    `feed` parses a piece of the text and returns the events of this piece. The text may be split into pieces
    anywhere. `finish` returns the outputs, or raises the error of `Adapter.parse`. `drain` then returns the last
    events:

        parser = adapter.stream_parser(signature)
        for piece in pieces:
            events = parser.feed(piece)
        outputs = parser.finish()
        events = parser.drain()

    Together, the deltas of a field are the text from which its value is parsed. Some outputs are not in the text:
    defaults, thinking, citations and tool calls. The events of such outputs come last, with one delta unless the
    value is None. A field whose value is invalid has no FieldEnd, and `finish` raises the error.

    This class has no rules for the format of a reply. The class works for any adapter, but only the last `drain`
    returns events. A subclass for one format overrides `read` and `read_end`. These methods call
    `start_field`, then `add_text` or `add_trimmed`, and then `end_field` or `close_without_event`.

    Args:
        adapter: Adapter that wrote the request.
        signature: Signature class of the request.

    Raises:
        OptionError: The adapter does not accept the signature.
    """

    def __init__(self, adapter: Adapter, signature: _AnySignature) -> None:
        self._adapter = adapter
        self._signature = signature
        self._fields = adapter.select_fields(signature).output_fields
        self._pieces: list[str] = []  # all text of the reply
        self._events: list[FieldEvent] = []
        self._sent: dict[str, list[str]] = {}  # text of the deltas of each field
        self._values: dict[str, Any] = {}  # values of the fields whose FieldEnd was created
        self._field: SignatureField | None = None  # the open field
        self._delta: list[str] = []  # pieces of the open field's text that are not in an event yet
        self._space: list[str] = []  # white space that is part of the open field only if more text follows
        self._has_text = False  # True if the open field has text that is not white space
        self._is_finished = False

    def feed(self, text: str) -> list[FieldEvent]:
        """Parses the next piece of the text. Returns the events that are complete after this piece.

        Raises:
            OptionError: `text` is not a string, or `end` or `finish` was called before.
        """
        check_option("text", text, str, "Pass the text of a TextDelta.")
        if self._is_finished:
            reason = "`end` or `finish` was already called"
            raise OptionError("text", reason, "Create a new parser for each reply.")
        self._pieces.append(text)
        self.read(text)
        return self.drain()

    def end(self) -> list[FieldEvent]:
        """Parses the buffered text at the end of the reply, and returns its events. `finish` calls this method."""
        if not self._is_finished:
            self._is_finished = True
            self.read_end()
        return self.drain()

    def finish(self, outputs: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Processes the end of the reply and returns the outputs, by name. `drain` then returns the last events.

        Args:
            outputs: Outputs of the complete reply, including outputs from thinking and tool calls. None means that
                `Adapter.parse` reads the outputs from the text.

        Raises:
            ParseError: `Adapter.parse` finds that the text lacks an output, or that a value is invalid.
        """
        self._events = self.end()
        if outputs is None:
            outputs = self._adapter.parse(self._signature, "".join(self._pieces))
        for name, value in outputs.items():
            if name not in self._values:
                self._complete_field(name, value)
        return outputs

    def drain(self) -> list[FieldEvent]:
        """Returns the events that were not returned before."""
        self._add_delta()
        events, self._events = self._events, []
        return events

    # -- for subclasses ----------------------------------------------------------------------------------------

    def read(self, text: str) -> None:
        """Reads the next piece of the text. Does nothing by default."""

    def read_end(self) -> None:
        """Parses the text that was buffered until the end of the reply. Does nothing by default."""

    def write_delta_text(self, field: SignatureField, value: Any) -> str:
        """Returns the text for the deltas of an output.

        `finish` calls this method for each output that has a value but no FieldEnd yet, such as a default.
        """
        return "".join(item for item in write_content(field, value) if isinstance(item, str))

    def start_field(self, name: str) -> None:
        """Opens the field with this name. An open field is first closed without a FieldEnd.

        If the name is not the name of an output, or the field was opened before, its text is ignored.
        """
        self.close_without_event()
        self._field = None if name in self._sent else self._fields.get(name)
        if self._field is not None:
            self._sent[name] = []
            self._events.append(FieldStart(name))

    def add_text(self, text: str) -> None:
        """Adds a piece of the text of the open field."""
        if text and self._field is not None:
            self._delta.append(text)

    def add_trimmed(self, text: str) -> None:
        """Adds a piece of the text of the open field. White space at the start and end of the field is omitted."""
        visible = text.rstrip()
        if visible:
            self.add_untrimmed(visible if self._has_text else visible.lstrip())
        if self._has_text:
            self._space.append(text[len(visible) :])

    def add_untrimmed(self, text: str) -> None:
        """Adds a piece of the text of the open field. White space at the start and end of the piece is kept."""
        self.add_text("".join((*self._space, text)))
        self._space.clear()
        self._has_text = True

    def end_field(self, value: Any = _OWN_TEXT, *, is_json: bool = False) -> None:
        """Closes the open field and parses its value. If the value is invalid, emits no FieldEnd.

        Args:
            value: Text or JSON value from which the value of the field is parsed. The default is the text of the
                deltas.
            is_json: True if `value` is a JSON value.
        """
        field = self._field
        self.close_without_event()
        if field is None:
            return
        if value is _OWN_TEXT:
            value = "".join(self._sent[field.name])
        try:
            parsed = parse_field(field, value, self._values, is_json=is_json)
        except ParseError:  # `finish` raises this error at the end of the reply
            return
        self._values[field.name] = parsed
        self._events.append(FieldEnd(field.name, parsed))

    def close_without_event(self) -> None:
        """Closes the open field, if there is one, without a FieldEnd. `finish` adds each missing FieldEnd."""
        self._add_delta()
        self._field = None
        self._space.clear()
        self._has_text = False

    # ----------------------------------------------------------------------------------------------------------

    def _add_delta(self) -> None:
        if self._delta and self._field is not None:
            text = "".join(self._delta)
            self._delta.clear()
            self._sent[self._field.name].append(text)
            self._events.append(FieldDelta(self._field.name, text))

    def _complete_field(self, name: str, value: Any) -> None:
        """Adds the missing events of an output.

        If the earlier deltas are only the start of its text, a further delta contains the remaining text.
        """
        sent = "".join(self._sent.get(name, ()))
        if name not in self._sent:
            self._sent[name] = []
            self._events.append(FieldStart(name))
        text = "" if value is None else self.write_delta_text(self._signature.output_fields[name], value)
        if text.startswith(sent) and text != sent:
            self._events.append(FieldDelta(name, text[len(sent) :]))
        self._values[name] = value
        self._events.append(FieldEnd(name, value))
