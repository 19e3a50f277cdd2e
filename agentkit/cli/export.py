"""`agentkit export`: writes the conversations of logs as rows of training data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import typer

from agentkit.cli.exit_codes import print_error
from agentkit.cli.files import check_blocks, encode, read, read_lines, write_bytes
from agentkit.cli.format import read_conversation
from agentkit.cli.options import KeepInvalidOption
from agentkit.cli.render import find_tokenizer, load_template
from agentkit.errors import AgentkitError
from agentkit.history.policies import MultiAgentHistory
from agentkit.training import Sample, dump_rows, samples_from_log, split_rewritten, tokenize
from agentkit.training.sample import is_reply

if TYPE_CHECKING:
    from agentkit.chat_templates import ChatTemplate
    from agentkit.training.row_formats import FormatName
    from agentkit.training.text_encoder import Encode
    from agentkit.training.trained_spans import TrainOn

__all__ = ["export_command"]

_ExportFormat: TypeAlias = Literal["openai", "sharegpt", "trl", "alpaca"]
_ALL: Final = "all"
_PROGRESS: Final = 1_000  # samples between two progress lines


def export_command(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="JSON files with one conversation, or .jsonl files with one conversation per line. "
            "'-' means standard input with one conversation per line."
        ),
    ],
    format: Annotated[_ExportFormat, typer.Option(help="Format of the rows.", show_default=False)],
    viewer: Annotated[
        str | None,
        typer.Option(
            help="Agent whose replies become samples, one for each reply, or 'all'. Without this option, each "
            "conversation is one sample.",
            show_default=False,
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            help="Chat template of the model. With --viewer, its formatter writes the messages of the samples. "
            "With a folder of a tokenizer, the summary counts the trained tokens.",
            show_default=False,
        ),
    ] = None,
    train_on: Annotated[
        Literal["assistant", "all", "last"], typer.Option(help="Messages that are trained.")
    ] = "assistant",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Maximum tokens of a sample. The summary counts longer samples as cut.", show_default=False
        ),
    ] = None,
    keep_invalid: KeepInvalidOption = False,
) -> None:
    """Write the conversations of logs as rows of training data, one JSON object per line.

    The command prints a summary to standard error: the numbers of samples, trained tokens, samples that are too
    long, refused conversations, and losses. A loss is content that the format cannot represent.
    """
    chosen = None if template is None else load_template(template)
    tokenizer = None if template is None else find_tokenizer(Path(template))
    export = _Export(format, viewer, chosen, tokenizer, train_on, max_tokens, keep_invalid)
    for log in logs:
        for place, text in _read_conversations(log):
            export.write(text, place)
    export.print_summary()
    raise typer.Exit(2 if export.refused else 0)


def _read_conversations(log: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the place and the text of each conversation in a log."""
    if log.suffix != ".jsonl" and str(log) != "-":
        yield str(log), read(log)
        return
    for number, line in enumerate(read_lines(log), 1):
        if line.strip():
            yield f"{log}, line {number}", line


@dataclass
class _Export:
    """Export of conversations, one by one.

    Attributes:
        samples: Number of written rows.
        trained: Number of trained tokens.
        cut: Number of samples with more than `max_tokens` tokens.
        refused: Number of conversations with an error.
        losses: Number of parts that the format cannot represent.
    """

    format: FormatName
    viewer: str | None
    template: ChatTemplate | None
    tokenizer: Encode | None
    train_on: TrainOn
    max_tokens: int | None
    keep_invalid: bool
    samples: int = 0
    trained: int = 0
    cut: int = 0
    refused: int = 0
    losses: int = 0

    def write(self, text: bytes, place: str) -> None:
        """Writes the rows of one conversation. Prints an error if the conversation is refused."""
        try:
            for sample in self._create_samples(text, place):
                rows = dump_rows(self.format, [self._apply_weights(sample)], on_loss=self._count_loss)
                write_bytes(encode(next(rows)))
                self.samples += 1
                if self.template is not None and self.tokenizer is not None:
                    self._count_tokens(sample, self.template, self.tokenizer)
                if self.samples % _PROGRESS == 0:
                    sys.stderr.write(f"{self.samples:,} samples\n")
        except AgentkitError as error:
            self.refused += 1
            sys.stderr.write(f"{place}: ")
            print_error(error)

    def print_summary(self) -> None:
        """Prints the counts to standard error."""
        trained = "" if self.tokenizer is None else f", {self.trained:,} trained tokens, {self.cut:,} cut"
        refused = f"{self.refused:,} refused, {self.losses:,} losses"
        sys.stderr.write(f"{self.samples:,} samples{trained}, {refused}\n")

    def _create_samples(self, text: bytes, place: str) -> Iterator[Sample]:
        msgs, options = read_conversation(text)
        check_blocks(msgs, self.keep_invalid)
        tools = options.get("tools", ())
        if self.viewer is None:
            yield Sample(msgs, tools, source=place)
            return
        speakers = {msg.name for msg in msgs if is_reply(msg)}
        viewers = speakers if self.viewer == _ALL else speakers & {self.viewer}
        formatter = None
        if self.template is not None:
            formatter = self.template.formatter(history=MultiAgentHistory(viewer=self.viewer))
        yield from samples_from_log(msgs, viewers=viewers, formatter=formatter, tools=tools)

    def _apply_weights(self, sample: Sample) -> Sample:
        """Returns a sample in which only the last reply is trained, if `train_on` is `last`."""
        if self.train_on != "last" or sample.weights is not None or not sample.replies:
            return sample
        weights: list[Any] = [0 if index in sample.replies else None for index in range(len(sample.msgs))]
        weights[sample.replies[-1]] = 1
        return replace(sample, weights=weights)

    def _count_tokens(self, sample: Sample, template: ChatTemplate, tokenizer: Encode) -> None:
        for part in split_rewritten(sample, template):
            tokenized = tokenize(part, template, tokenizer, train_on=self.train_on)
            self.trained += tokenized.trained
            self.cut += self.max_tokens is not None and len(tokenized.ids) > self.max_tokens

    def _count_loss(self, place: str, reason: str) -> None:
        self.losses += 1
