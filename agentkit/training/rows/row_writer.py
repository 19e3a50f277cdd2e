"""`dump_rows`: writes samples as rows of a data set, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from agentkit.argument_checks import check_option
from agentkit.errors import InputError, MessageError, OptionError
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_formats import FormatName, find_format
from agentkit.training.sample import Sample

__all__ = ["RowWriter", "dump_rows"]


class RowWriter(Iterator[dict[str, Any]]):
    """Iterator over the rows of samples, created by `dump_rows`.

    After an error, the iterator continues with the next sample.

    Attributes:
        index: Index of the sample that was read last, even if writing its rows failed. -1 before the first sample.
    """

    def __init__(
        self,
        format: FormatName,
        samples: Iterable[Sample],
        on_loss: Literal["raise"] | Callable[[str, str], object],
    ) -> None:
        self.index = -1
        self._losses = LossLog(format)
        self._format = find_format(format)
        self._samples = iter(samples)
        self._on_loss = on_loss
        self._rows: list[dict[str, Any]] = []

    def __iter__(self) -> RowWriter:
        return self

    def __next__(self) -> dict[str, Any]:
        """Returns the next row.

        Raises:
            StopIteration: There are no further samples.
            MessageError: The format cannot represent the next sample, or `on_loss` is `raise` and there is a loss.
            OptionError: The next sample is not a `Sample`.
        """
        if not self._rows:
            self._rows = self.write(next(self._samples))
        return self._rows.pop(0)

    def write(self, sample: Sample) -> list[dict[str, Any]]:
        """Returns the rows of `sample`, and increases `index`. For `trl`, the first sample determines the columns.

        Raises:
            MessageError: The format cannot represent the sample, or `on_loss` is `raise` and there is a loss.
            OptionError: `sample` is not a `Sample`.
        """
        self.index += 1
        if type(sample) is not Sample:
            check_option(f"samples[{self.index}]", sample, Sample, "Pass Sample objects.")
        self._format = self._format.select(sample)  # later samples do not change the format
        losses = self._losses
        try:
            rows = self._format.write_rows(sample, losses)
            if losses.omitted and callable(self._on_loss):  # with "raise", an error names the first loss
                losses.check_trained(sample)
        except InputError as error:
            losses.pop_losses()
            raise MessageError(f"samples[{self.index}].{error.place}", error.reason, error.advice) from None
        except (ValueError, RecursionError) as error:  # an integer with too many digits, or deeply nested values
            losses.pop_losses()
            reason = f"a value cannot be written as JSON ({error})"
            raise MessageError(f"samples[{self.index}]", reason, "Remove the value from the sample.") from None
        for field, reason in losses.pop_losses() if losses.losses else ():
            place = f"samples[{self.index}].{field}"
            if not callable(self._on_loss):
                advice = "Use another format, or pass a function as on_loss."
                raise MessageError(place, f"{reason} (format {losses.format!r})", advice)
            self._on_loss(place, reason)
        return rows


def dump_rows(
    format: FormatName,
    samples: Iterable[Sample],
    *,
    on_loss: Literal["raise"] | Callable[[str, str], object] = "raise",
) -> RowWriter:
    """Returns an iterator over rows, which are dicts of JSON values. Each row is written when it is requested.

    `load_rows` describes the formats. The first sample determines the columns of all rows of `trl`:

    - If the first sample has weights of replies, and a prompt before each trained reply, there is one row with
      `prompt` and `completion` for each trained reply of each sample.
    - Otherwise, the rows have `messages`. To train only the replies, set the option `assistant_only_loss` of trl.

    Rows omit the following values, and `on_loss` does not report them:

    - ids, timestamps, metadata and opaque state of messages and blocks, and the source of the sample. But `atif`
      keeps timestamps and the metadata that it read. `recording` keeps the messages unchanged, and the source as
      `label`.
    - the viewer. A reply of another agent gets the weight 0 if its weight is None.
    - the name and the role of a message with tool results. Each result becomes a separate message.
    - the weight 1 of replies in formats without weights, because such formats train all replies.
    - the original JSON text of arguments in formats that store an object, and all call ids in `sharegpt`.

    Rows do not distinguish a string from a list with one text block, or an empty string from an empty list.

    `datasets.load_dataset("json")` reads the columns from the first 10 MB of a file. If a column first appears
    later, pass `features`, or pass `chunksize` with the size of the file in bytes.

    Args:
        format: Name of the format.
        samples: The samples.
        on_loss: `raise` raises an error for content that the format cannot represent, such as a tool call, a
            weight or the name of a speaker. If this is a function, the function is called with the place and the
            reason of each loss, and the row is written without the content. A sample is still refused with an
            error if the row would train an empty reply, because the format has no field for any content of the
            reply.

    Raises:
        OptionError: There is no such format, or another option is invalid.

    Example:
        >>> from agentkit import Msg
        >>> sample = Sample([Msg("user", "Hello.", "user"), Msg("assistant", "Hi.", "assistant")])
        >>> next(dump_rows("alpaca", [sample]))
        {'instruction': 'Hello.', 'input': '', 'output': 'Hi.'}
    """
    if on_loss != "raise" and not callable(on_loss):
        raise OptionError(
            "on_loss", f"unknown value {on_loss!r}", "Pass 'raise', or a function that takes a place and a reason."
        )
    check_option("samples", samples, Iterable, "Pass a list of samples.")
    return RowWriter(format, samples, on_loss)
