"""`RowFormat`: reads and writes the rows of one format of training data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, cast

from agentkit.argument_checks import check_choice
from agentkit.errors import MessageError
from agentkit.json_values import copy_json, ensure_json_safe
from agentkit.messages.message import Msg
from agentkit.training.sample import MessageWeight, Sample

__all__ = [
    "FORMAT_NAMES",
    "FormatName",
    "LossLog",
    "RowFormat",
    "find_format",
    "refuse_format",
    "replace_system",
    "replace_weighted_system",
    "split_columns",
]

FormatName: TypeAlias = Literal[
    "openai",
    "trl",
    "dspy",
    "sharegpt",
    "alpaca",
    "input_output",
    "prompt_completion",
    "preference",
    "atif",
    "recording",
]
"""Names of the formats."""

_MODULES: Final[dict[str, str]] = {
    "openai": "chat_rows OPENAI",
    "trl": "chat_rows TRL",
    "dspy": "chat_rows DSPY",
    "sharegpt": "sharegpt_rows SHAREGPT",
    "alpaca": "pair_rows ALPACA",
    "input_output": "pair_rows INPUT_OUTPUT",
    "prompt_completion": "pair_rows PROMPT_COMPLETION",
    "preference": "preference_rows PREFERENCE",
    "atif": "atif_rows ATIF",
    "recording": "recording_rows RECORDING",
}
"""Module and name of each format, which is imported on first use."""

FORMAT_NAMES: Final = tuple(_MODULES)
"""Names of the formats."""


@dataclass
class LossLog:
    """Log of the content of one sample that a row cannot contain.

    Attributes:
        format: Name of the format.
        losses: Place and reason of each loss.
    """

    format: str
    losses: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, place: str, reason: str) -> None:
        """Adds a loss."""
        self.losses.append((place, reason))

    def add_names(self, msgs: Iterable[Msg], viewer: str | None, place: str = "msgs") -> None:
        """Adds a loss for each name of a speaker other than the viewer."""
        for index, msg in enumerate(msgs):
            if msg.name not in ("", viewer, *_NAMES_OF_ROLES):
                self.add(f"{place}[{index}].name", f"the format has no field for the name {msg.name!r}")

    def add_beside_results(self, msg: Msg, weight: MessageWeight, place: str) -> None:
        """Adds a loss for each block beside tool results, and for a weight that trains the results."""
        for index, block in enumerate(msg.blocks):
            if block.type != "tool_result":
                self.add(f"{place}.content[{index}]", "the format has no content beside tool results")
        if weight:
            self.add(place, "the format trains no tool results")

    def add_fields(self, sample: Sample, *fields: str) -> None:
        """Adds a loss for each field of the sample that is not in `fields` and that has a value."""
        for name in ("tools", "weights", "tokens", "rejected", "extra"):
            if name not in fields and getattr(sample, name):
                self.add(name, f"the format has no field for {name}")


_NAMES_OF_ROLES: Final = ("system", "user", "assistant", "tool")


@dataclass(frozen=True)
class RowFormat:
    """Format of the rows of training data.

    Attributes:
        columns: Names of the columns that the format defines. Other columns are those of `Sample.extra`.
        read: Function that converts a row to a sample. The arguments are the row and a system prompt, which
            replaces the system messages of the row. It raises `MessageError` for an invalid row.
        write: Function that converts a sample to a row. The arguments are the sample, the log of losses, and the
            first sample of all.
        kept: Names of the columns of which `Sample.extra` has a part.
    """

    columns: tuple[str, ...]
    read: Callable[[dict[str, Any], str | None], Sample]
    write: Callable[[Sample, LossLog, Sample], dict[str, Any]]
    kept: tuple[str, ...] = ()

    def write_row(self, sample: Sample, losses: LossLog, first: Sample) -> dict[str, Any]:
        """Returns the row of a sample. Columns in `Sample.extra` do not replace the columns of the format."""
        for name in sample.extra.keys() & {*self.columns} - {*self.kept}:
            losses.add(f"extra.{name}", f"the format uses the column {name!r} for the conversation")
            sample = replace(sample, extra={key: sample.extra[key] for key in sample.extra if key != name})
        return self.write(sample, losses, first)


def find_format(name: str) -> RowFormat:
    """Returns the format with this name.

    Raises:
        OptionError: There is no such format.
    """
    check_choice("format", name, FORMAT_NAMES)
    module, _, constant = _MODULES[name].partition(" ")
    return cast("RowFormat", getattr(import_module(f"agentkit.training.{module}"), constant))


def split_columns(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Returns the other columns of a row, for `Sample.extra`. Columns with the value None are omitted."""
    extra = {name: value for name, value in row.items() if name not in columns and value is not None}
    return cast("dict[str, Any]", copy_json(ensure_json_safe(extra, "row"))) if extra else extra


def replace_system(msgs: Sequence[Msg], system: str | None) -> list[Msg]:
    """Returns messages with another system prompt. With None, the messages are unchanged."""
    if system is None:
        return list(msgs)
    return [Msg("system", system, "system"), *(msg for msg in msgs if msg.role != "system" or msg.tool_results)]


def replace_weighted_system(
    msgs: Sequence[Msg], weights: Sequence[MessageWeight], system: str | None
) -> tuple[list[Msg], list[MessageWeight]]:
    """Returns messages with another system prompt, and their weights."""
    if system is None:
        return list(msgs), list(weights)
    indexes = [index for index, msg in enumerate(msgs) if msg.role != "system" or msg.tool_results]
    return replace_system(msgs, system), [None, *(weights[index] for index in indexes)]


def refuse_format(format: str, place: str, reason: str) -> MessageError:
    """Returns the error for a sample that no row of a format can represent."""
    return MessageError(
        place, f"the format {format!r} cannot represent the sample: {reason}", "Use another format."
    )
