"""`RowFormat`: reads and writes the rows of one format of training data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.errors import MessageError
from agentkit.json_values import copy_json
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_values import get_unknown_values
from agentkit.training.sample import Sample, is_reply

__all__ = ["RowFormat", "create_format_error", "split_columns"]


@dataclass(frozen=True)
class RowFormat:
    """Format of the rows of training data.

    Attributes:
        columns: Names of the columns that the format defines. Other columns become `Sample.extra`.
        read: Function that converts a row to a sample. The function raises `MessageError` for an invalid row.
        write: Function that converts a sample to a row, or to several rows. The arguments are the sample and the
            log of losses.
        shared_columns: Names of columns of the format that can also take values from `Sample.extra`.
    """

    columns: tuple[str, ...]
    read: Callable[[dict[str, Any]], Sample]
    write: Callable[[Sample, LossLog], dict[str, Any] | list[dict[str, Any]]]
    shared_columns: tuple[str, ...] = ()

    def select(self, first: Sample) -> RowFormat:
        """Returns the format for all samples of a data set whose first sample is `first`.

        For `trl`, the first sample determines the columns of all rows. Any other format returns itself.
        """
        return self

    def write_rows(self, sample: Sample, losses: LossLog) -> list[dict[str, Any]]:
        """Returns the rows of a sample.

        Omits each column of `Sample.extra` whose value is None, or that the format itself uses. These columns
        are added to `losses`.
        """
        if sample.extra:
            sample = replace(sample, extra=self._select_columns(sample.extra, losses))
        if sample.viewer is not None:
            sample = _set_other_agent_weights(sample)
        rows = self.write(sample, losses)
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


def _set_other_agent_weights(sample: Sample) -> Sample:
    """Returns a sample in which replies of agents other than the viewer have the weight 0 instead of None."""
    weights: list[Any] = []
    for index, msg in enumerate(sample.msgs):
        weight = sample.get_weight(index)
        if is_reply(msg) and msg.name != sample.viewer:
            weight = tuple(item or 0 for item in weight) if isinstance(weight, tuple) else weight or 0
        weights.append(weight)
    return replace(sample, weights=weights)


def split_columns(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """Returns a copy of the columns of a row that are not in `columns`, for `Sample.extra`.

    Omits the values None and NaN.

    Raises:
        MessageError: JSON cannot represent a value.
    """
    extra: dict[str, Any] = copy_json(get_unknown_values(row, frozenset(columns), ""))
    return extra


def create_format_error(format: str, place: str, reason: str) -> MessageError:
    """Returns the error for a sample that the rows of a format cannot represent."""
    return MessageError(
        place, f"the format {format!r} cannot represent the sample: {reason}", "Use another format."
    )
