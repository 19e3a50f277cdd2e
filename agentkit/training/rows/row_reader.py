"""`load_rows`: reads samples from rows of a data set, one by one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from pydantic_core import from_json

from agentkit.argument_checks import check_option, check_text
from agentkit.errors import InputError, MessageError, OptionError
from agentkit.formatting.formatter import check_messages
from agentkit.json_values import replace_surrogates
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_messages
from agentkit.reprs import describe_value, shorten_repr
from agentkit.training.rows.row_formats import FormatName, find_format
from agentkit.training.sample import Sample

__all__ = ["RowReader", "load_rows"]


class RowReader(Iterator[Sample]):
    """Iterator over the samples of rows, created by `load_rows`.

    After an error in a row, the iterator continues with the next row.

    Attributes:
        line: Number of the row that was read last. The first row has the number 1, and empty lines are counted. 0
            before the first row.
    """

    def __init__(
        self,
        format: FormatName,
        rows: Iterable[Mapping[str, Any] | str | bytes],
        columns: Mapping[str, str] | None,
        system: str | None,
        on_error: Callable[[MessageError], object] | None,
        prompt: Sequence[Msg] | None,
    ) -> None:
        check_text("system", system)
        check_option("on_error", on_error, Callable | None, "Pass a function that takes an error.")
        value: object = rows
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            advice = "Pass an open file, or a list of dicts or lines."
            raise OptionError(
                "rows", f"expected an iterable of rows, got {describe_value(cast('object', rows))}", advice
            )
        if prompt is not None and format != "recording":
            raise OptionError(
                "prompt",
                f"only the format 'recording' takes a prompt, got the format {format!r}",
                "Remove `prompt`.",
            )
        self.line = 0
        self._format = find_format(format)
        self._rows = iter(cast("Iterable[object]", rows))
        self._columns = _check_columns(columns, self._format.columns)
        self._system = system
        self._on_error = on_error
        self._request = None if prompt is None else dump_messages(check_messages(prompt))

    def __iter__(self) -> RowReader:
        return self

    def __next__(self) -> Sample:
        """Returns the next sample.

        Raises:
            StopIteration: There are no further rows.
            MessageError: A row is invalid and `on_error` is None, or the rows are a text file that is not UTF-8.
                The place of an error in a row begins with the line number.
        """
        try:
            for row in self._rows:
                self.line += 1
                if isinstance(row, _LINE) and (not row or row.isspace()):
                    continue
                sample = self._read_or_report(row)
                if sample is not None:
                    return sample
        except UnicodeDecodeError as error:  # the rows are a file that was opened as text
            self._rows = iter(())  # the lines that were decoded together with the invalid line are lost
            reason = f"a line after line {self.line} is not UTF-8 ({error.reason}), so reading ends"
            raise MessageError("rows", reason, "Open the file in the mode 'rb'.") from None
        raise StopIteration

    def _read_or_report(self, row: object) -> Sample | None:
        """Returns the sample of a row. For an invalid row, calls `on_error` and returns None.

        Raises:
            MessageError: The row is invalid, and `on_error` is None.
        """
        try:
            return self._read(row)
        except InputError as error:
            located = MessageError(f"line {self.line}, {error.place}", error.reason, error.advice)
        except (RecursionError, KeyError, TypeError, ValueError) as error:
            reason = f"cannot read the row ({type(error).__name__}: {error})"
            located = MessageError(f"line {self.line}", reason, "Fix or remove the row.")
        if self._on_error is None:
            raise located
        self._on_error(located)
        return None

    def _read(self, row: object) -> Sample:
        is_checked = False
        if isinstance(row, _LINE):
            line = row
            try:
                row = from_json(line, cache_strings="keys")  # faster than the module json
                is_checked = True  # `from_json` rejects lone surrogates
            except ValueError:
                row = _parse(line)
        if type(row) is not dict:
            if not isinstance(row, Mapping):
                reason = f"expected a JSON object, got {shorten_repr(row, 60)}"
                raise MessageError("row", reason, "Fix or remove the row.")
            row = dict(cast("Mapping[str, Any]", row))
        values = cast("dict[str, Any]", row if is_checked else replace_surrogates(row, f"line {self.line}"))
        if self._columns:
            moved = {name: values[column] for name, column in self._columns.items() if column in values}
            others = {name: value for name, value in values.items() if name not in self._columns.values()}
            values = {**others, **moved}
        if self._request is not None:
            values = {"request": self._request, **values}
        sample = self._format.read(values)
        return sample if self._system is None else _replace_system(sample, self._system, self._format.columns)


_LINE: Final = (str, bytes)


def _parse(line: str | bytes) -> object:
    """Parses a line that `from_json` rejects, for example because of a byte order mark or lone surrogates."""
    try:
        return json.loads(line.removeprefix("\ufeff") if isinstance(line, str) else line)
    except (ValueError, RecursionError) as error:
        raise MessageError("row", f"the line is not JSON ({error})", "Fix or remove the line.") from None


def _replace_system(sample: Sample, system: str, columns: tuple[str, ...]) -> Sample:
    """Returns a sample in which `system` replaces all system messages, except those with tool calls or results.

    If the format has a column `system`, an unused text of this column is removed from `Sample.extra`.
    """
    prompt = Msg("system", system, "system")
    indexes = [index for index, msg in enumerate(sample.msgs) if not msg.features & Feature.SYSTEM]
    rejected = [msg for msg in sample.rejected if not msg.features & Feature.SYSTEM]
    replaced_columns = {"system"}.intersection(columns)
    return replace(
        sample,
        msgs=[prompt, *(sample.msgs[index] for index in indexes)],
        weights=None if sample.weights is None else [None, *(sample.weights[index] for index in indexes)],
        tokens={indexes.index(index) + 1: ids for index, ids in (sample.tokens or {}).items()},
        rejected=[prompt, *rejected] if sample.rejected else (),
        extra={name: value for name, value in sample.extra.items() if name not in replaced_columns},
    )


def _check_columns(columns: Mapping[str, str] | None, names: tuple[str, ...]) -> dict[str, str]:
    check_option("columns", columns, Mapping | None, "Pass a dict: {column of the format: column of your rows}.")
    for name in columns or ():
        if name not in names:
            advice = f"Use one of {', '.join(names)}."
            raise OptionError("columns", f"the format has no column {name!r}", advice)
    return dict(columns or {})


def load_rows(
    format: FormatName,
    rows: Iterable[Mapping[str, Any] | str | bytes],
    columns: Mapping[str, str] | None = None,
    system: str | None = None,
    *,
    on_error: Callable[[MessageError], object] | None = None,
    prompt: Sequence[Msg] | None = None,
) -> RowReader:
    r"""Returns an iterator over the samples of rows. Each row is read when its sample is requested.

    The formats have the following columns:

    - `openai`: `messages`, and optionally `tools` and `images`. Replies can have tool calls, a `refusal` and a
      `weight`. The column `parallel_tool_calls` becomes a value in `Sample.extra`. The format also reads rows of
      torchtune, whose messages have the keys `masked`, `ipython` and `eot`. With `ipython`, a text that is not a
      tool call in JSON becomes a call of `code_interpreter` with the argument `code`.
    - `trl`: `messages`, or `prompt` and `completion` as texts or messages, or `chosen` and `rejected`, or
      `conversations`. agentkit trains only the replies in `completion`. trl itself trains all messages of a
      completion.
    - `dspy`: `messages`, and optionally `tools`, as `format_finetune_data` of DSPy returns them.
    - `sharegpt`: `conversations` with the keys `from` and `value`, and optionally `system`, `tools` and `images`.
    - `alpaca`: `instruction`, `input` and `output`, and optionally `system` and `history`. The user message is the
      text of `instruction` and `input`, as in LLaMA-Factory.
    - `stanford_alpaca`: `instruction`, `input` and `output`. The user message becomes one of the two prompt
      texts of Stanford's Alpaca. For torchtune's `train_on_input`, pass `train_on="all"` to `tokenize`.
    - `input_output`: `input` and `output`.
    - `prompt_completion`: the texts `prompt` and `completion`.
    - `preference`: `chosen` and `rejected`, with or without `prompt`. The format also reads rows of OpenAI's
      preference fine-tuning. Weights of chosen messages become weights of the sample. Weights of rejected
      messages become metadata.
    - `atif`: one trajectory of the Agent Trajectory Interchange Format per row. `dump_rows` numbers the steps from
      1. Other numbers become metadata.
    - `recording`: results of `compare` as dicts. For the file of `compare(record=…)`, pass `prompt`. The sample
      does not contain the model, its options, usage, times and costs.

    Other columns become `Sample.extra`. Unknown keys of messages, content parts, tool calls and tools become their
    metadata. A row with content that a sample cannot contain, such as a file or a video, is invalid.

    Some values are converted:

    - The role `developer` becomes `system`.
    - A column, a key, or an argument in an object with the value None counts as missing, because the package
      `datasets` adds such values. Arguments in JSON text keep None. NaN in a column or an unknown key counts as
      missing too, except in a tool.
    - Lone surrogates become U+FFFD. Each replacement is logged with its line.

    Args:
        format: Name of the format.
        rows: Rows as dicts, or as lines of JSON text, for example an open file.
        columns: Maps column names of the format to column names of the rows: `{"instruction": "question"}`.
        system: System prompt that replaces the system messages of each row. None keeps the system messages.
        on_error: Function that is called with the error of each invalid row. None means that the error is raised.
            The iterator can be continued after the error.
        prompt: Messages that were sent to the models, for `recording`. The file of `compare(record=…)` contains
            only the replies.

    Raises:
        OptionError: There is no such format or column, or another option is invalid.

    Example:
        >>> lines = ['{"input": "Hello.", "output": "Hi."}\n', "{broken\n"]
        >>> errors = []
        >>> [sample.msgs[1].text for sample in load_rows("input_output", lines, on_error=errors.append)]
        ['Hi.']
        >>> errors[0].place
        'line 2, row'
    """
    return RowReader(format, rows, columns, system, on_error, prompt)
