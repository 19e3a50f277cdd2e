"""Messages of one turn: the user message and the reply of an example, of an earlier turn or of a `History` row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg
from agentkit.prompts.examples import Completeness, Example, ReplyText
from agentkit.prompts.field_content import join_segments
from agentkit.prompts.field_types import History
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.native_outputs import omit_fields
from agentkit.prompts.signature import Signature

if TYPE_CHECKING:
    from agentkit.prompts.adapter import Adapter
    from agentkit.prompts.history_rows import HistoryRow

__all__ = ["format_example", "format_history_rows", "format_turn"]

_AnySignature: TypeAlias = type[Signature[Any]]

_INCOMPLETE: Final = "This is an example of the task, though some input or output fields are not supplied."
_MISSING: Final = "Not supplied for this particular example. "
"""Text that replaces the value of an output if an example has no value for this output."""


def format_example(
    adapter: Adapter, signature: _AnySignature, example: Example, completeness: Completeness, number: int
) -> Iterator[Msg]:
    """Yields the messages of one example. Metadata marks the messages as one unit, which a budget never splits."""
    from agentkit.budget.units import EXAMPLE_MARK

    mark = {EXAMPLE_MARK: number}
    prefix = _INCOMPLETE if completeness == "incomplete" else ""
    content = adapter.format_user_message_content(signature, example.inputs, prefix=prefix)
    if content:
        yield Msg("user", content, "user", metadata=mark)
    text = _write_outputs(adapter, signature, example.outputs, _MISSING)
    yield Msg("assistant", text, "assistant", metadata=mark)


def format_turn(
    adapter: Adapter, signature: _AnySignature, inputs: Mapping[str, Any], outputs: Mapping[str, Any]
) -> Iterator[Msg]:
    """Yields the messages of an earlier turn, with the same text as when the turn was the current request."""
    yield from _format_request(adapter, signature, inputs)
    yield Msg("assistant", _write_outputs(adapter, signature, outputs), "assistant")


def _format_request(adapter: Adapter, signature: _AnySignature, inputs: Mapping[str, Any]) -> Iterator[Msg]:
    """Yields the user message of an earlier turn. A turn without inputs has no user message."""
    names = {name for name, field in signature.input_fields.items() if field.type is not History}
    if names & inputs.keys():
        content = adapter.format_user_message_content(signature, inputs, is_request=True)
        yield Msg("user", content, "user")


def _write_outputs(
    adapter: Adapter, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
) -> str:
    text = next((value for value in outputs.values() if isinstance(value, ReplyText)), None)
    if text is not None:
        return str(text)
    return adapter.format_assistant_message_content(signature, outputs, missing)


# -- rows of a history ----------------------------------------------------------------------------------------


def format_history_rows(adapter: Adapter, signature: _AnySignature, inputs: Mapping[str, Any]) -> Iterator[Msg]:
    """Yields the messages of the earlier turns in an input of the type `History`. Each row is one turn."""
    names = [name for name, field in signature.input_fields.items() if field.type is History]
    if not names:
        return
    from agentkit.prompts.history_rows import read_row

    rows: Iterable[Mapping[str, Any]] = inputs.get(names[0]) or ()
    for index, values in enumerate(rows):
        row = read_row(values, f"{names[0]}[{index}]", signature.fields)
        if not row.calls:
            yield from format_turn(adapter, signature, values, values)
        elif adapter.native_tools:
            yield from _format_native_row(adapter, signature, row)
        else:
            yield from _format_text_row(adapter, signature, row)


def _format_native_row(adapter: Adapter, signature: _AnySignature, row: HistoryRow) -> Iterator[Msg]:
    """Yields the messages of an earlier turn, with its tool calls and results as blocks."""
    outputs = [name for name in signature.output_fields if row.values.get(name) is not None]
    absent = tuple(name for name in signature.output_fields if name not in outputs)
    text = _write_outputs(adapter, omit_fields(signature, absent), row.values) if outputs else ""
    yield from _format_request(adapter, signature, row.values)
    yield Msg("assistant", [*([TextBlock(text)] if text else []), *row.calls], "assistant")
    if row.results:
        yield Msg("tools", row.results, "user")


def _format_text_row(adapter: Adapter, signature: _AnySignature, row: HistoryRow) -> Iterator[Msg]:
    """Yields the messages of an earlier turn, with its tool calls and results as texts."""
    from agentkit.prompts.history_rows import RESULTS

    yield from format_turn(adapter, signature, row.values, row.values)
    if row.results:
        section = adapter.format_field_with_value(SignatureField(RESULTS, Any, is_output=False), row.stored)
        yield Msg("user", join_segments(section), "user")
