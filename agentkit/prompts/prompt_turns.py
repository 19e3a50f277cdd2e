"""`PromptTurns`: the messages of examples and of earlier turns in the prompts of a `PromptAdapter`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from agentkit.argument_checks import check_option
from agentkit.messages.blocks import Block, ToolResultBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.prompts.adapter import HistoryItem
from agentkit.prompts.examples import Example, ReplyText
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.field_types import History
from agentkit.prompts.history_rows import read_row
from agentkit.prompts.prefix_inputs import get_prefix
from agentkit.prompts.prompt_inputs import read_inputs
from agentkit.prompts.prompt_modes import PromptMode
from agentkit.prompts.prompt_texts import PromptTexts
from agentkit.prompts.signature import Signature

__all__ = ["ANSWER_RESULT", "PromptTurns", "is_usable"]

_AnySignature: TypeAlias = type[Signature[Any]]

ANSWER_RESULT: Final = "Done."
"""Text of the tool result in an example.

With the parser `tool_call`, the answer of an example is a tool call, and this text is the result of the call.
"""

_CALLS: Final = "tool_calls"
"""Name of an output with tool calls that an example may have even if the signature lacks this output."""


@dataclass(frozen=True)
class PromptTurns:
    """Messages of the examples and earlier turns of one request.

    Attributes:
        signature: Signature with the fields that the prompt shows.
        find_mode: Function that returns a mode by its name. The second argument is the place of the name in
            errors.
    """

    signature: _AnySignature
    find_mode: Callable[[str | None, str], PromptMode]

    def format_example(self, example: Example, mode: str | None, place: str, number: int | None) -> Iterator[Msg]:
        """Yields the messages of an example, or of an earlier turn if `number` is None.

        Args:
            example: Example or earlier turn, which may lack inputs or outputs.
            mode: Name of the mode.
            place: Place of the example in errors. The ids of tool calls also depend on this place.
            number: Number of the example, beginning with 1.

        Raises:
            OptionError: There is no such mode, or a template needs a value that JSON cannot represent.
            MessageError: A value of an input does not fit its type.
            TemplateError: A template is invalid or calls `fail`, or a variable is missing.
        """
        found = self.find_mode(mode, f"{place}.mode")
        values = read_inputs(self.signature, example.inputs, place)
        prompt = found.create_texts(self.signature, values, number)
        if _has_inputs(self.signature, example):
            yield from prompt.render_user()
        for index, item in enumerate(get_prefix(self.signature, values)):
            yield from self.format_history_item(prompt, item, f"{place}.inputs.prefix[{index}]")
        if _has_answer(self.signature, example):
            reply = self.write_reply(example, found, place)
            yield reply
            yield from self._write_results(reply, found)

    def write_reply(self, example: Example, mode: PromptMode, place: str) -> Msg:
        """Returns the reply of an example, with its outputs and tool calls."""
        calls = [
            call
            for name, value in example.outputs.items()
            if name not in self.signature.output_fields and (name == _CALLS or _is_calls(value))
            for call in cast("Sequence[object]", value)
        ]
        parser = mode.bind_parser(self.signature)
        return parser.write_message(example.outputs, calls, note=example.note, seed=place)

    def _write_results(self, reply: Msg, mode: PromptMode) -> Iterator[Msg]:
        """Yields a message with the result of a reply's tool call, if the parser is `tool_call`.

        With this parser, the answer is a tool call, and APIs accept no tool call without a result.
        """
        parser = mode.bind_parser(self.signature).parser
        if parser.format.where == "tool_call":
            answers = [call for call in reply.tool_uses if call.name == parser.tools[0].name]
            results = [ToolResultBlock(call.id, call.name, ANSWER_RESULT) for call in answers]
            if results:
                yield Msg("tools", results, "user")

    def format_rows(self, inputs: Mapping[str, Any], mode: str | None) -> list[Msg]:
        """Returns the messages of the earlier turns in an input of the type `History`. Each row is one turn."""
        fields = self.signature.input_fields
        names = [name for name, item in fields.items() if item.type is History]
        rows: Iterable[Mapping[str, Any]] = inputs.get(names[0]) or () if names else ()
        msgs: list[Msg] = []
        for index, values in enumerate(rows):
            place = f"{names[0]}[{index}]"
            row = read_row(values, place, self.signature.fields)
            known = {name: value for name, value in values.items() if name in fields}
            outputs = {name: value for name, value in row.values.items() if value is not row.calls}
            msgs += self.format_example(Example(known, outputs), mode, place, None)
            results: list[Block] = [*row.results]
            if row.calls:
                has_answer = _has_answer(self.signature, Example({}, outputs))
                # If the answer is a tool call, its result joins the other results.
                # One message must contain the results of all tool calls of a reply.
                if has_answer and msgs[-1].role == "user":
                    results = [*msgs.pop().blocks, *results]
                text = msgs.pop().blocks if has_answer else ()
                msgs.append(Msg("assistant", [*text, *row.calls], "assistant"))
            if results:
                msgs.append(Msg("tools", results, "user"))
        return msgs

    def format_history_item(self, prompt: PromptTexts, item: HistoryItem, place: str) -> Iterable[Msg]:
        """Returns the messages of one item of the history or of the input `prefix`.

        Raises:
            OptionError: The item is not a message, an example or feedback.
        """
        if isinstance(item, Msg):
            return [item]
        if isinstance(item, Example):
            return self.format_example(item, item.mode, place, None)
        check_option(place, item, Msg | Example | Feedback, "Pass messages, examples and feedback.")
        return [Msg("user", prompt.render("feedback", {"feedback": item}), "user")]


def is_usable(signature: _AnySignature, example: Example) -> bool:
    """Returns True if an example has at least one input and one output.

    Tool calls and the text of a reply count as outputs. If the signature has no inputs, the example needs only an
    output.
    """
    return _has_inputs(signature, example) and _has_answer(signature, example)


def _has_inputs(signature: _AnySignature, example: Example) -> bool:
    return not signature.input_fields or not signature.input_fields.keys().isdisjoint(example.inputs)


def _has_answer(signature: _AnySignature, example: Example) -> bool:
    """Returns True if an example has an output, the text of a reply, or tool calls."""
    return any(
        name == _CALLS or name in signature.output_fields or isinstance(value, ReplyText) or _is_calls(value)
        for name, value in example.outputs.items()
    )


def _is_calls(value: object) -> bool:
    """Returns True if a value is a list or tuple of `ToolUseBlock` objects, and is not empty."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(call, ToolUseBlock) for call in cast("Sequence[object]", value))
