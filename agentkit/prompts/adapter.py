"""`Adapter`: writes the messages of a typed prompt, and parses the reply of the model.

The order of the messages is: system message, examples, history, current request. A separate method writes each
part of the text, so that a subclass can change one part. The methods have the same names as in DSPy.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from agentkit.argument_checks import check_choice, check_option
from agentkit.errors import OptionError, ParseError
from agentkit.json_values import is_encodable
from agentkit.messages.blocks import Block
from agentkit.messages.message import Msg
from agentkit.messages.parsed_reply import EARLY_ENDS, explain_error
from agentkit.prompts.adapter_events import ObservedSteps, Observer
from agentkit.prompts.bound_request import get_inputs
from agentkit.prompts.cached_texts import as_cache_key, create_system_message, create_text
from agentkit.prompts.example_messages import format_example, format_history_rows, format_turn
from agentkit.prompts.examples import Completeness, Example
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.field_content import Segment, join_segments
from agentkit.prompts.field_types import History
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.native_outputs import get_absent_value, omit_native_fields, read_native_outputs
from agentkit.prompts.reply_texts import get_reply_text
from agentkit.prompts.signature import Signature, SignatureMeta
from agentkit.reprs import shorten_repr
from agentkit.tools.tool import ToolLike, as_tools

if TYPE_CHECKING:  # for type checkers only, so that a program that sends no request does not load these modules
    from agentkit.capabilities.capabilities import Capabilities
    from agentkit.formatting.formatter import RequestOptions
    from agentkit.prompts.field_stream_parser import FieldStreamParser

__all__ = ["Adapter", "HistoryItem"]

HistoryItem: TypeAlias = Msg | Example | Feedback
"""Entry of a history: a message, an earlier turn (`Example`), or feedback on the preceding reply."""

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True)
class Adapter(ObservedSteps, ABC):
    """Base class of adapters. Adapters are immutable.

    Attributes:
        native_tools: True to send the tools in the inputs through the API. If the signature has an output of the
            type `list[ToolUseBlock]`, the tool calls of the reply become the value of this output. The prompt
            then omits this output, and the inputs of the types `Tool` and `list[Tool]`.
        native_reasoning: True to omit outputs of the type `Reasoning` from the prompt. The thinking of the reply
            becomes the value of these outputs. Ask for thinking with the provider's own parameters, such as
            `ask(…, reasoning_effort="low")`.
        native_citations: True to omit outputs of the type `list[Citation]` from the prompt. The citations of the
            reply become the value of these outputs. Without citations, the value is the default of the output, or
            else an empty list.
        fallback: Adapter that `ask` and `stream` use once if a reply is not in the format of this adapter. A
            fallback adapter that refuses the request with an OptionError is not used. None means that there is no
            second adapter.
        order: Order of the examples. `complete_last`, as in DSPy, places examples that lack some fields before the
            complete examples. `given` leaves the order unchanged.
        observe: Function that receives an `AdapterEvent` at the start and the end of each call of `format` and
            `parse`. A subclass that overrides these methods also sends the events. Exceptions of the function are
            logged. None means that there is no such function. The fallback adapter has its own `observe`.
    """

    native_tools: bool = False
    fallback: Adapter | None = None
    order: Literal["complete_last", "given"] = "complete_last"
    native_reasoning: bool = dataclasses.field(default=False, kw_only=True)
    native_citations: bool = dataclasses.field(default=False, kw_only=True)
    observe: Observer | None = dataclasses.field(default=None, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("native_tools", "native_reasoning", "native_citations"):
            check_option(name, getattr(self, name), bool)
        check_option("fallback", self.fallback, Adapter | None)
        check_choice("order", self.order, ("complete_last", "given"))
        check_option("observe", self.observe, Callable | None, "Pass a function that takes an AdapterEvent.")
        if iscoroutinefunction(self.observe):
            reason = "expected a synchronous function, got an async function"
            raise OptionError("observe", reason, "Pass a function without `async`.")

    def select_mode(self, mode: str | None) -> Adapter:
        """Returns an adapter for requests in a mode of `PromptAdapter`. If `mode` is None, returns this adapter.

        Raises:
            OptionError: The adapter does not have the mode. Only a `PromptAdapter` has modes.
        """
        if mode is None:
            return self
        reason = f"expected None, because {type(self).__name__} has no modes, got {shorten_repr(mode, 60)}"
        raise OptionError("mode", reason, "Pass a PromptAdapter with modes={…}, or omit the mode.")

    # -- messages ----------------------------------------------------------------------------------------------

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
        msgs = [create_system_message(self, shown)]
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
        from agentkit.models.registry import load_provider

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
        return omit_native_fields(signature, self.native_tools, self.native_reasoning, self.native_citations)

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
        """Returns the section of one input: its name and its value, as texts and media blocks."""

    @abstractmethod
    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns the sentence at the end of a request that reminds the model of the format of the outputs.

        Empty if there are no outputs.
        """

    @abstractmethod
    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply with the given outputs.

        If `outputs` has no value for an output, the text `missing` replaces the value. If `missing` is None, the
        value is written as None.
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

        Args:
            signature: Signature with the fields that the prompt shows.
            inputs: Values of the inputs. Missing inputs and inputs of the type `History` are omitted.
            prefix: Text before the inputs.
            suffix: Text at the end of the message.
            is_request: True to remind the model of the format of the outputs (see
                `user_message_output_requirements`).
        """
        segments: list[Segment] = [prefix] if prefix else []
        for name, field in signature.input_fields.items():
            if name in inputs and field.type is not History:
                section = self.format_field_with_value(field, inputs[name])
                segments += ["\n\n", *section] if segments else section
        reminder = create_text(self, signature, "user_message_output_requirements") if is_request else ""
        for text in (reminder, suffix):
            if text:
                segments += ["\n\n", text] if segments else [text]
        return join_segments(segments)

    def format_demos(self, signature: _AnySignature, examples: Iterable[Example]) -> list[Msg]:
        """Returns the messages of the examples: a user message and a reply for each example."""
        examples = [*examples]
        if not examples:
            return []
        inputs, outputs = [*signature.input_fields], [*signature.output_fields]
        rows: list[tuple[Completeness, Example]] = []
        for index, example in enumerate(examples):
            check_option(f"examples[{index}]", example, Example)
            rows.append((example.classify(inputs, outputs), example))
        if self.order == "complete_last":
            rows.sort(key=lambda row: row[0] == "complete")
        usable = [row for row in rows if row[0] != "unusable"]
        key = as_cache_key(self)
        msgs: list[Msg] = []
        for number, (completeness, example) in enumerate(usable):
            create = partial(format_example, self, signature, example, completeness, number)
            msgs += create() if key is None else example.cache_messages((key, signature, number), create)
        return msgs

    def format_conversation_history(self, signature: _AnySignature, inputs: Mapping[str, Any]) -> list[Msg]:
        """Returns the messages of the earlier turns in an input of the type `History`. Each row is one turn."""
        return [*format_history_rows(self, signature, inputs)]

    def _format_item(
        self, signature: _AnySignature, inputs: Mapping[str, Any], item: HistoryItem, place: str
    ) -> Iterable[Msg]:
        if isinstance(item, Msg):
            return [item]
        if isinstance(item, Example):
            return format_turn(self, signature, item.inputs, item.outputs)
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
            capabilities: Rules of the target, such as `model.formatter.capabilities(model.model)`.
            tools: Tools of the request. If the adapter has `native_tools`, pass the tools in the inputs too.
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

    def parse(self, signature: _AnySignature, reply: Msg | str) -> dict[str, Any]:
        """Returns the outputs in a reply, by name.

        A reply with tool calls needs no text. Outputs that the text of such a reply lacks are None.

        Raises:
            ParseError: The reply lacks an output, a value is invalid, or the reply was cut off, refused or
                filtered. The attribute `partial` of the error contains the outputs that were parsed.
            OptionError: `reply` is neither a message nor a string.
        """
        text = reply if isinstance(reply, str) and is_encodable(reply) else get_reply_text(_as_message(reply))
        shown = self.select_fields(signature)
        try:
            outputs = self.parse_text(shown, text) if shown.output_fields else {}
        except ParseError as error:
            outputs = self._read_missing_outputs(shown, _as_message(reply), error)
        if shown is not signature:
            outputs = self.merge_native_outputs(signature, shown, outputs, _as_message(reply))
        if isinstance(reply, Msg) and reply.finish_reason in EARLY_ENDS:  # the last output may be incomplete
            raise explain_error(ParseError("the outputs may be incomplete", text=text, partial=outputs), reply)
        return outputs

    def merge_native_outputs(
        self, signature: _AnySignature, shown: _AnySignature, outputs: Mapping[str, Any], msg: Msg
    ) -> dict[str, Any]:
        """Returns all outputs of a reply, by name.

        The values of the outputs that the prompt omits are the tool calls, thinking and citations of the reply. If
        the reply has no value for such an output, the value is the default of the output, or else an empty value.

        Args:
            signature: Signature class.
            shown: The signature with only the fields that the prompt shows.
            outputs: Outputs in the text of the reply.
            msg: The reply.

        Raises:
            ParseError: A value does not fit the constraints of its output.
        """
        hidden = [field for name, field in signature.output_fields.items() if name not in shown.output_fields]
        if not hidden:
            return {**outputs}
        found = {**outputs, **read_native_outputs(hidden, msg)}
        found |= {field.name: get_absent_value(field, msg) for field in hidden if field.name not in found}
        return {name: found[name] for name in signature.output_fields}

    @abstractmethod
    def parse_text(self, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the outputs in the text of a reply.

        Raises:
            ParseError: The text lacks an output, or a value is invalid. The attribute `partial` of the error
                contains the outputs that were parsed.
        """

    def _read_missing_outputs(self, signature: _AnySignature, msg: Msg, error: ParseError) -> dict[str, Any]:
        """Returns the outputs of a reply, including outputs outside the text: tool calls, thinking and citations.

        In a reply with tool calls, all other missing outputs are None.

        Raises:
            ParseError: An output is invalid, or is missing in the complete reply.
        """
        missing = [field for name, field in signature.output_fields.items() if name not in error.partial]
        if msg.tool_uses:  # a reply with tool calls needs no text
            native = read_native_outputs(missing, msg)
            return {**dict.fromkeys(signature.output_fields), **error.partial, **native}
        if error.failure == "no_structure":
            found = {**error.partial, **read_native_outputs(missing, msg)}
            if found.keys() >= signature.output_fields.keys():
                return {name: found[name] for name in signature.output_fields}
        raise explain_error(error, msg) from None

    def fill_outputs(self, signature: _AnySignature, outputs: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Returns the outputs in the order of the signature.

        The value of a missing output is its default. Without a default, the value is None if the type is a union
        with None, such as `int | None`.

        Raises:
            ParseError: A missing output has no default, and its type is not a union with None.
        """
        fields = signature.output_fields
        if [*outputs] == [*fields]:
            return {**outputs}
        found: dict[str, Any] = {}
        missing: list[str] = []
        for name, field in fields.items():
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
            reason = f"expected the fields {', '.join(fields)}, but the reply has {names}"
            raise ParseError(reason, failure="no_structure", place=missing[0], text=text, partial=found)
        return found


def _read_inputs(signature: _AnySignature, inputs: Mapping[str, Any] | Signature[Any]) -> Mapping[str, Any]:
    if isinstance(inputs, Signature):
        return get_inputs(inputs)
    check_option("inputs", inputs, Mapping, "Pass a dict of values by field name, or a bound request.")
    return inputs


def _as_message(reply: Msg | str) -> Msg:
    check_option("reply", reply, Msg | str, "Pass the reply of a model.")
    return reply if isinstance(reply, Msg) else Msg("assistant", reply, "assistant")
