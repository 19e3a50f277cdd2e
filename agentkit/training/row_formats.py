"""`RowFormat`: reads and writes the rows of one format of training data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, cast

from agentkit.argument_checks import check_choice
from agentkit.errors import MessageError
from agentkit.json_values import copy_json
from agentkit.messages.message import Msg
from agentkit.training.loss_log import LossLog
from agentkit.training.row_values import get_others
from agentkit.training.sample import MessageWeight, Sample, is_reply

__all__ = [
    "FORMAT_NAMES",
    "FormatName",
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
    "stanford_alpaca",
    "input_output",
    "prompt_completion",
    "preference",
    "atif",
    "recording",
]
"""Names of the formats."""

_MODULES: Final[dict[str, str]] = {
    "openai": "chat_rows OPENAI",
    "trl": "trl_rows TRL",
    "dspy": "chat_rows DSPY",
    "sharegpt": "sharegpt_rows SHAREGPT",
    "alpaca": "pair_rows ALPACA",
    "stanford_alpaca": "pair_rows STANFORD_ALPACA",
    "input_output": "pair_rows INPUT_OUTPUT",
    "prompt_completion": "pair_rows PROMPT_COMPLETION",
    "preference": "preference_rows PREFERENCE",
    "atif": "atif_rows ATIF",
    "recording": "recording_rows RECORDING",
}
"""Module and constant of each format. The module is imported on first use."""

FORMAT_NAMES: Final = tuple(_MODULES)
"""Names of the formats."""


@dataclass(frozen=True)
class RowFormat:
    """Format of the rows of training data.

    Attributes:
        columns: Names of the columns that the format defines. Other columns become `Sample.extra`.
        read: Function that converts a row to a sample. The arguments are the row and a system prompt, which
            replaces the system messages of the row. None keeps the system messages. The function raises
            `MessageError` for an invalid row.
        write: Function that converts a sample to a row, or to several rows. The arguments are the sample, the log
            of losses, and the first sample of the data set. The first sample determines the columns of `trl`.
        shared_columns: Names of columns of the format that can also take values from `Sample.extra`.
    """

    columns: tuple[str, ...]
    read: Callable[[dict[str, Any], str | None], Sample]
    write: Callable[[Sample, LossLog, Sample], dict[str, Any] | list[dict[str, Any]]]
    shared_columns: tuple[str, ...] = ()

    def write_rows(self, sample: Sample, losses: LossLog, first: Sample) -> list[dict[str, Any]]:
        """Returns the rows of a sample.

        Omits each column of `Sample.extra` whose value is None, or that the format itself uses. These columns
        are added to `losses`.
        """
        if sample.extra:
            sample = replace(sample, extra=self._select_columns(sample.extra, losses))
        if sample.viewer is not None:
            sample = _mask_other_agents(sample)
        rows = self.write(sample, losses, first)
        rows = rows if isinstance(rows, list) else [rows]
        return copy_json(rows) if sample.extra else rows  # a change of a row must not change the sample

    def _select_columns(self, extra: Mapping[str, Any], losses: LossLog) -> dict[str, Any]:
        selected: dict[str, Any] = {}
        for name, value in extra.items():
            if name in self.columns and name not in self.shared_columns:
                losses.add(f"extra.{name}", f"the format itself uses the column {name!r}")
            elif value is None:
                losses.add(f"extra.{name}", "a reader treats a column with the value None as missing")
            else:
                selected[name] = value
        return selected


def _mask_other_agents(sample: Sample) -> Sample:
    """Returns a sample in which replies of agents other than the viewer have the weight 0 instead of None."""
    weights: list[Any] = []
    for index, msg in enumerate(sample.msgs):
        weight = sample.get_weight(index)
        if is_reply(msg) and msg.name != sample.viewer:
            weight = tuple(item or 0 for item in weight) if isinstance(weight, tuple) else weight or 0
        weights.append(weight)
    return replace(sample, weights=weights)


def find_format(name: str) -> RowFormat:
    """Returns the format with this name.

    Raises:
        OptionError: There is no such format.
    """
    check_choice("format", name, FORMAT_NAMES)
    module, _, constant = _MODULES[name].partition(" ")
    return cast("RowFormat", getattr(import_module(f"agentkit.training.{module}"), constant))


def split_columns(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Returns a copy of the columns of a row that are not in `columns`, for `Sample.extra`.

    Omits the values None and NaN.

    Raises:
        MessageError: JSON cannot represent a value.
    """
    extra = get_others(row, frozenset(columns), "")
    return cast("dict[str, Any]", copy_json(extra)) if extra else {}


def replace_system(msgs: Sequence[Msg], system: str | None) -> list[Msg]:
    """Returns messages in which `system` replaces the system messages without tool results.

    If `system` is None, returns the messages unchanged.
    """
    if system is None:
        return list(msgs)
    return [Msg("system", system, "system"), *(msg for msg in msgs if msg.role != "system" or msg.tool_results)]


def replace_weighted_system(
    msgs: Sequence[Msg], weights: Sequence[MessageWeight], system: str | None
) -> tuple[list[Msg], list[MessageWeight]]:
    """Returns the messages that `replace_system` returns, and the weights of these messages."""
    if system is None:
        return list(msgs), list(weights)
    indexes = [index for index, msg in enumerate(msgs) if msg.role != "system" or msg.tool_results]
    return replace_system(msgs, system), [None, *(weights[index] for index in indexes)]


def refuse_format(format: str, place: str, reason: str) -> MessageError:
    """Returns the error for a sample that the rows of a format cannot represent."""
    return MessageError(
        place, f"the format {format!r} cannot represent the sample: {reason}", "Use another format."
    )
