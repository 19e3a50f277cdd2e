"""`Adapter`: writes the messages of a typed prompt, and parses the reply of the model.

The order of the messages is: system message, examples, history, current request. A separate method writes each
part of the text, so that a subclass can change one part. The methods have the same names as in DSPy.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import iscoroutinefunction
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from agentkit.argument_checks import check_choice, check_option
from agentkit.budget.units import EXAMPLE_MARK
from agentkit.capabilities.capabilities import Capabilities
from agentkit.errors import OptionError, ParseError
from agentkit.formatting.formatter import RequestOptions
from agentkit.messages.blocks import Block, TextBlock
from agentkit.messages.message import Msg
from agentkit.messages.parsed_reply import EARLY_ENDS, explain_error
from agentkit.models.registry import load_provider
from agentkit.prompts.adapter_events import Observer, observe_step
from agentkit.prompts.bound_request import get_inputs
from agentkit.prompts.examples import Example, ReplyText
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.field_content import Segment, join_segments
from agentkit.prompts.field_types import History, Reasoning
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.history_rows import RESULTS, HistoryRow, read_row
from agentkit.prompts.native_outputs import read_native_outputs
from agentkit.prompts.signature import Signature, SignatureMeta
from agentkit.prompts.type_names import is_tool_calls
from agentkit.reprs import shorten_repr
from agentkit.tools.tool import Tool, ToolLike, as_tools

if TYPE_CHECKING:
    from agentkit.prompts.field_stream_parser import FieldStreamParser

__all__ = ["Adapter", "HistoryItem", "find_tools"]

HistoryItem: TypeAlias = Msg | Example | Feedback
"""Entry of a history: a message, an earlier turn (`Example`), or feedback on the preceding reply."""

INCOMPLETE: Final = "This is an example of the task, though some input or output fields are not supplied."
MISSING: Final = "Not supplied for this particular example. "
"""Text that replaces the value of an output if an example has no value for this output."""

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True)
class Adapter(ABC):
    """Base class of adapters. Adapters are immutable.

    Attributes:
        native_tools: True to send the tools in the inputs through the API. If the signature has an output of the
            type `list[ToolUseBlock]`, the tool calls of the reply become the value of this output. The prompt
            then omits this output, and the inputs of the types `Tool` and `list[Tool]`.
        native_reasoning: True to omit outputs of the type `Reasoning` from the prompt. The thinking of the reply
            becomes the value of these outputs. Ask for thinking with the provider's own parameters, such as
            `ask(…, reasoning_effort="low")`.
        fallback: Adapter that `ask` uses once if a reply is not in the format of this adapter. None means that
            there is no second adapter.
        order: Order of the examples. `complete_last`, as in DSPy, places examples that lack some fields before the
            complete ones. `given` keeps the order.
        observe: Function that gets an `AdapterEvent` before and after each `format` and `parse`. Exceptions of
            the function are logged. None means that there is no such function. The fallback adapter has its
            own `observe`.
    """

    native_tools: bool = False
    fallback: Adapter | None = None
    order: Literal["complete_last", "given"] = "complete_last"
    native_reasoning: bool = dataclasses.field(default=False, kw_only=True)
    observe: Observer | None = dataclasses.field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        check_option("native_tools", self.native_tools, bool)
        check_option("native_reasoning", self.native_reasoning, bool)
        check_option("fallback", self.fallback, Adapter | None)
        check_choice("order", self.order, ("complete_last", "given"))
        check_option("observe", self.observe, Callable | None, "Pass a function that takes an AdapterEvent.")
        if iscoroutinefunction(self.observe):
            raise OptionError("observe", "async functions are not supported", "Pass a function without `async`.")

    def select_mode(self, mode: str | None) -> Adapter:
        """Returns an adapter for requests in a mode of `PromptAdapter`. If `mode` is None, returns this adapter.

        Raises:
            OptionError: The adapter does not have the mode. Only a `PromptAdapter` has modes.
        """
        if mode is None:
            return self
        reason = f"{type(self).__name__} has no modes, got {shorten_repr(mode, 60)}"
        raise OptionError("mode", reason, "Pass a PromptAdapter with modes={…}, or omit the mode.")

    # -- messages ----------------------------------------------------------------------------------------------

    @observe_step("format")
    def format(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any] | Signature[Any],
        *,
        examples: Iterable[Example] = (),
        history: Iterable[HistoryItem] = (),
        tools: Sequence[ToolLike] = (),
    ) -> list[Msg]:
        """Returns the messages of a request.

        Args:
            signature: Signature class.
            inputs: Values of the inputs, or a request that is bound to this signature. A missing input is omitted.
            examples: Examples of the task. An example without inputs or without outputs is omitted.
            history: Earlier messages, earlier turns and feedback. Messages are sent unchanged.
            tools: Tools of the request that are not in the inputs. The messages do not mention these tools.

        Raises:
            OptionError: An argument is invalid, or a value cannot be written.
        """
        values = _read_inputs(signature, inputs)
        as_tools(tools)
        shown = self.select_fields(signature)
        msgs = [_create_system_message(self, shown)]
        msgs += self.format_demos(shown, examples)
        msgs += self.format_conversation_history(shown, values)
        for index, item in enumerate(history):
            msgs += self._format_item(shown, values, item, f"history[{index}]")
        content = self.format_user_message_content(shown, values, is_request=True)
        return [*msgs, Msg("user", content, "user", pinned=True)] if content else msgs

    def conversation(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any] | Signature[Any],
        outputs: Mapping[str, Any],
        examples: Iterable[Example] = (),
    ) -> list[Msg]:
        """Returns the messages of a request and a reply with the given outputs, for example as training data."""
        shown = self.select_fields(signature)
        reply = Msg("assistant", self.format_assistant_message_content(shown, outputs), "assistant")
        return [*self.format(signature, inputs, examples=examples), reply]

    def format_finetune_data(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any] | Signature[Any],
        outputs: Mapping[str, Any],
        examples: Iterable[Example] = (),
    ) -> dict[str, Any]:
        """Returns a row of training data: `{"messages": […]}` in the format of OpenAI Chat Completions.

        The row contains the messages that `conversation` returns, converted by the formatter of OpenAI.

        Raises:
            OptionError: An argument is invalid, or a value cannot be written.
        """
        msgs = self.conversation(signature, inputs, outputs, examples)
        return {"messages": load_provider("openai").chat_formatter().lower(msgs).request["messages"]}

    def select_fields(self, signature: _AnySignature) -> _AnySignature:
        """Returns the signature with only the fields that the prompt shows.

        Raises:
            OptionError: `signature` is not a signature class. With `native_tools`, the error is also raised if the
                signature has an output for tool calls but no input for tools.
        """
        if not isinstance(cast("object", signature), SignatureMeta):
            reason = f"expected a signature class, got {shorten_repr(signature, 60)}"
            raise OptionError("signature", reason, "Pass a subclass of Signature.")
        hidden = [*_find_native_tools(signature)] if self.native_tools else []
        if self.native_reasoning:
            hidden += [name for name, field in signature.output_fields.items() if field.type is Reasoning]
        return _without_fields(signature, tuple(hidden)) if hidden else signature

    def format_system_message(self, signature: _AnySignature) -> str:
        """Returns the text of the system message."""
        steps = (self.format_field_description, self.format_field_structure, self.format_task_description)
        return "\n".join(step(signature) for step in steps)

    @abstractmethod
    def format_field_description(self, signature: _AnySignature) -> str:
        """Returns the lists of the inputs and outputs, with types and descriptions."""

    @abstractmethod
    def format_field_structure(self, signature: _AnySignature) -> str:
        """Returns the description of the format of inputs and outputs."""

    @abstractmethod
    def format_task_description(self, signature: _AnySignature) -> str:
        """Returns the instructions of the signature."""

    @abstractmethod
    def format_field_with_value(self, field: SignatureField, value: object) -> list[Segment]:
        """Returns the section of one input with its value."""

    @abstractmethod
    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns the reminder of the output format at the end of a request. Empty if there are no outputs."""

    @abstractmethod
    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply with the given outputs.

        `missing` is the text of an output for which `outputs` has no value. If `missing` is None, such an output
        is written as None.
        """

    def format_user_message_content(
        self,
        signature: _AnySignature,
        inputs: Mapping[str, Any],
        *,
        prefix: str = "",
        suffix: str = "",
        is_request: bool = False,
    ) -> Any:
        """Returns the content of a user message: a text, or blocks if the inputs have media.

        If `is_request` is True, the content contains the reminder of the output format.
        """
        sections: list[Sequence[Segment]] = [[prefix]] if prefix else []
        for name, field in signature.input_fields.items():
            if name in inputs and field.type is not History:
                sections.append(self.format_field_with_value(field, inputs[name]))
        reminder = _create_text(self, signature, "user_message_output_requirements") if is_request else ""
        sections += [[text] for text in (reminder, suffix) if text]
        segments: list[Segment] = []
        for section in sections:
            segments += ["\n\n", *section] if segments else section
        return join_segments(segments)

    def format_demos(self, signature: _AnySignature, examples: Iterable[Example]) -> list[Msg]:
        """Returns the messages of the examples: a user message and a reply for each example."""
        inputs, outputs = [*signature.input_fields], [*signature.output_fields]
        rows: list[tuple[str, Example]] = []
        for index, example in enumerate(examples):
            check_option(f"examples[{index}]", example, Example)
            rows.append((example.classify(inputs, outputs), example))
        if self.order == "complete_last":
            rows.sort(key=lambda row: row[0] == "complete")
        usable = [row for row in rows if row[0] != "unusable"]
        return [msg for number, row in enumerate(usable) for msg in self._format_demo(signature, *row, number)]

    def _format_demo(self, signature: _AnySignature, kind: str, example: Example, number: int) -> tuple[Msg, ...]:
        key = (self, signature, number)
        return example.cache_messages(key, lambda: self._create_demo(signature, kind, example, number))

    def _create_demo(self, signature: _AnySignature, kind: str, example: Example, number: int) -> Iterator[Msg]:
        """Yields the messages of one example. Metadata marks them as one unit, which a budget never splits."""
        mark = {EXAMPLE_MARK: number}
        prefix = INCOMPLETE if kind == "incomplete" else ""
        content = self.format_user_message_content(signature, example.inputs, prefix=prefix)
        if content:
            yield Msg("user", content, "user", metadata=mark)
        text = self._format_outputs(signature, example.outputs, MISSING)
        yield Msg("assistant", text, "assistant", metadata=mark)

    def format_conversation_history(self, signature: _AnySignature, inputs: Mapping[str, Any]) -> list[Msg]:
        """Returns the messages of the earlier turns in an input of the type `History`. Each row is one turn."""
        names = [name for name, field in signature.input_fields.items() if field.type is History]
        rows: Iterable[Mapping[str, Any]] = inputs.get(names[0]) or () if names else ()
        msgs: list[Msg] = []
        for index, values in enumerate(rows):
            row = read_row(values, f"{names[0]}[{index}]", signature.fields)
            if not row.calls:
                msgs += self._format_turn(signature, values, values)
            elif self.native_tools:
                msgs += self._format_native_row(signature, row)
            else:
                msgs += self._format_text_row(signature, row)
        return msgs

    def _format_native_row(self, signature: _AnySignature, row: HistoryRow) -> Iterator[Msg]:
        """Yields the messages of an earlier turn, with its tool calls and results as blocks."""
        outputs = [name for name in signature.output_fields if row.values.get(name) is not None]
        absent = tuple(name for name in signature.output_fields if name not in outputs)
        text = self._format_outputs(_without_fields(signature, absent), row.values) if outputs else ""
        yield from self._format_request(signature, row.values)
        yield Msg("assistant", [*([TextBlock(text)] if text else []), *row.calls], "assistant")
        if row.results:
            yield Msg("tools", row.results, "user")

    def _format_text_row(self, signature: _AnySignature, row: HistoryRow) -> Iterator[Msg]:
        """Yields the messages of an earlier turn, with its tool calls and results as texts."""
        yield from self._format_turn(signature, row.values, row.values)
        if row.results:
            section = self.format_field_with_value(SignatureField(RESULTS, Any, is_output=False), row.stored)
            yield Msg("user", join_segments(section), "user")

    def _format_turn(
        self, signature: _AnySignature, inputs: Mapping[str, Any], outputs: Mapping[str, Any]
    ) -> Iterator[Msg]:
        """Yields the messages of an earlier turn, with the same text as when the turn was the current request."""
        yield from self._format_request(signature, inputs)
        yield Msg("assistant", self._format_outputs(signature, outputs), "assistant")

    def _format_request(self, signature: _AnySignature, inputs: Mapping[str, Any]) -> Iterator[Msg]:
        """Yields the user message of an earlier turn. A turn without inputs has no user message."""
        names = {name for name, field in signature.input_fields.items() if field.type is not History}
        if names & inputs.keys():
            content = self.format_user_message_content(signature, inputs, is_request=True)
            yield Msg("user", content, "user")

    def _format_outputs(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        text = next((value for value in outputs.values() if isinstance(value, ReplyText)), None)
        if text is not None:
            return str(text)
        return self.format_assistant_message_content(signature, outputs, missing)

    def _format_item(
        self, signature: _AnySignature, inputs: Mapping[str, Any], item: HistoryItem, place: str
    ) -> Iterable[Msg]:
        if isinstance(item, Msg):
            return [item]
        if isinstance(item, Example):
            return self._format_turn(signature, item.inputs, item.outputs)
        check_option(place, item, Msg | Example | Feedback, "Pass messages, examples and feedback.")
        return [Msg("user", self.format_feedback(item, signature, inputs), "user")]

    def format_feedback(
        self, feedback: Feedback, signature: _AnySignature, inputs: Mapping[str, Any] | Signature[Any]
    ) -> str | tuple[Block, ...]:
        """Returns the content of a user turn: the problem with the last reply, and a request for another reply.

        `inputs` are the inputs of the request.
        """
        return f'Error. Please try again.\n\n"""\n{feedback.description or feedback.label}\n"""'

    # -- requests and replies ----------------------------------------------------------------------------------

    def request_options(
        self, signature: _AnySignature, capabilities: Capabilities, tools: Sequence[ToolLike] = ()
    ) -> RequestOptions:
        """Returns the options of the request: tools, tool choice and response format.

        Args:
            signature: Signature class.
            capabilities: Rules of the target: `model.formatter.capabilities(model.model)`.
            tools: Tools of the request. If the adapter has `native_tools`, the tools in the inputs are included.
        """
        return {"tools": tools} if tools else {}

    def stream_parser(self, signature: _AnySignature) -> FieldStreamParser:
        """Returns a parser for the text of a streamed reply.

        By default, the parser returns all events at the end of the reply.

        Raises:
            OptionError: The adapter does not accept the signature.
        """
        from agentkit.prompts.field_stream_parser import FieldStreamParser

        return FieldStreamParser(self, signature)

    @observe_step("parse")
    def parse(self, signature: _AnySignature, reply: Msg | str) -> dict[str, Any]:
        """Returns the outputs in a reply, by name.

        Raises:
            ParseError: The reply lacks an output, a value is invalid, or the reply was cut off, refused or
                filtered. The attribute `partial` of the error contains the outputs that were parsed.
            OptionError: `reply` is neither a message nor a text.
        """
        check_option("reply", reply, Msg | str, "Pass the reply of a model.")
        msg = reply if isinstance(reply, Msg) else Msg("assistant", reply, "assistant")
        outputs = self._read_outputs(signature, msg)
        if msg.finish_reason in EARLY_ENDS:  # the last output may be incomplete
            error = ParseError("the outputs may be incomplete", text=msg.text, partial=outputs)
            raise explain_error(error, msg)
        return outputs

    def _read_outputs(self, signature: _AnySignature, msg: Msg) -> dict[str, Any]:
        shown = self.select_fields(signature)
        try:
            outputs = self.parse_text(shown, msg.text) if shown.output_fields else {}
        except ParseError as error:
            if not (self.native_tools and msg.tool_uses):
                outputs = self._complete(shown, msg, error)
            else:  # a reply with tool calls needs no text
                outputs = {**dict.fromkeys(shown.output_fields), **error.partial}
        return self.add_native_outputs(signature, shown, outputs, msg)

    def add_native_outputs(
        self, signature: _AnySignature, shown: _AnySignature, outputs: Mapping[str, Any], msg: Msg
    ) -> dict[str, Any]:
        """Returns all outputs of a reply. The outputs that the prompt omits are its tool calls and its thinking.

        Args:
            signature: Signature class.
            shown: The signature with only the fields that the prompt shows.
            outputs: Outputs in the text of the reply.
            msg: The reply.
        """
        hidden = [field for name, field in signature.output_fields.items() if name not in shown.output_fields]
        if not hidden:
            return {**outputs}
        defaults = {field.name: field.get_default() if not field.is_required else Reasoning() for field in hidden}
        found = {**defaults, **outputs, **read_native_outputs(hidden, msg)}
        return {name: found[name] for name in signature.output_fields}

    @abstractmethod
    def parse_text(self, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the outputs in the text of a reply.

        Raises:
            ParseError: The text lacks an output, or a value is invalid. The attribute `partial` of the error
                contains the outputs that were parsed.
        """

    def _complete(self, signature: _AnySignature, msg: Msg, error: ParseError) -> dict[str, Any]:
        """Returns the outputs of a reply, including those outside the text: tool calls, thinking and citations.

        Raises:
            ParseError: An output is invalid, or is missing in the complete reply.
        """
        if error.failure == "no_structure":
            missing = [field for name, field in signature.output_fields.items() if name not in error.partial]
            found = {**error.partial, **read_native_outputs(missing, msg)}
            if found.keys() >= signature.output_fields.keys():
                return {name: found[name] for name in signature.output_fields}
        raise explain_error(error, msg) from None

    def fill_outputs(self, signature: _AnySignature, outputs: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Returns the outputs in the order of the signature.

        The value of a missing output is its default. Without a default, the value is None if the type allows None.

        Raises:
            ParseError: An output is missing, has no default and must not be None.
        """
        found: dict[str, Any] = {}
        missing: list[str] = []
        for name, field in signature.output_fields.items():
            if name in outputs:
                found[name] = outputs[name]
            elif not field.is_required:
                found[name] = field.get_default()
            elif NoneType in get_args(field.type):
                found[name] = None
            else:
                missing.append(name)
        if missing:
            names = ", ".join(outputs) or "none"
            reason = f"expected the fields {', '.join(signature.output_fields)}, but the reply has {names}"
            raise ParseError(reason, failure="no_structure", place=missing[0], text=text, partial=found)
        return found


def _find_native_tools(signature: _AnySignature) -> Iterator[str]:
    """Yields the names of the outputs for tool calls and of the inputs for tools.

    If no output is for tool calls, yields no names.

    Raises:
        OptionError: The signature has an output for tool calls but no input for tools.
    """
    calls = [name for name, field in signature.output_fields.items() if is_tool_calls(field.type)]
    inputs = [name for name, field in signature.input_fields.items() if _is_tools(field)]
    if calls and not inputs:
        advice = "Add an input of the type list[Tool], or pass native_tools=False."
        reason = f"the output {calls[0]!r} is for tool calls, but no input is for tools"
        raise OptionError("signature", reason, advice)
    if calls:
        yield from (*calls, *inputs)


@lru_cache(256)
def _without_fields(signature: _AnySignature, names: tuple[str, ...]) -> _AnySignature:
    for name in names:
        signature = signature.delete(name)
    return signature


def _create_system_message(adapter: Adapter, signature: _AnySignature) -> Msg:
    """Returns the system message. Equal texts share one `Msg` object, so that its cached token count is reused."""
    return _cached_message(_create_text(adapter, signature, "format_system_message"))


@lru_cache(256)
def _cached_message(text: str) -> Msg:
    return Msg("system", text, "system")


def _create_text(adapter: Adapter, signature: _AnySignature, step: str) -> str:
    """Returns and caches the text from the method `step`. The text depends only on the adapter and signature."""
    try:
        return _cached_text(adapter, signature, step)
    except TypeError:  # an adapter class of an application may have a field that cannot be hashed
        return str(getattr(adapter, step)(signature))


@lru_cache(512)
def _cached_text(adapter: Adapter, signature: _AnySignature, step: str) -> str:
    return str(getattr(adapter, step)(signature))


def _read_inputs(signature: _AnySignature, inputs: Mapping[str, Any] | Signature[Any]) -> Mapping[str, Any]:
    if isinstance(inputs, Signature):
        return get_inputs(inputs)
    check_option("inputs", inputs, Mapping, "Pass a dict of values by field name, or a bound request.")
    return inputs


def _is_tools(field: SignatureField) -> bool:
    return field.type is Tool or field.type == list[Tool]


def find_tools(signature: _AnySignature, inputs: Mapping[str, Any]) -> list[Tool]:
    """Returns the tools in the inputs of a request."""
    tools: list[Tool] = []
    for name, field in signature.input_fields.items():
        value = inputs.get(name)
        if _is_tools(field) and value is not None:
            tools += as_tools(cast("list[ToolLike]", value) if isinstance(value, list) else [value])
    return tools
