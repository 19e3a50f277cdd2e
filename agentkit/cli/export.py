"""`agentkit export`: writes the conversations of logs as rows of training data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from agentkit.chat_templates.template_arguments import find_template
from agentkit.cli.exit_codes import print_error
from agentkit.cli.export_summary import ExportSummary
from agentkit.cli.files import check_blocks, encode_row, find_tokenizer, read, read_lines, write_bytes
from agentkit.cli.logs import check_log_format, load_log
from agentkit.cli.options import KeepInvalidOption
from agentkit.errors import AgentkitError, OptionError
from agentkit.formatting.formatter import check_messages
from agentkit.history.policies import MultiAgentHistory
from agentkit.tools.tool import as_tools
from agentkit.training import Sample, TokenizedSample, dump_rows, samples_from_log, split_rewritten, tokenize
from agentkit.training.log_samples import LogSamples
from agentkit.training.reply_losses import check_calls
from agentkit.training.sample import Weight, build_trusted_sample, is_reply

if TYPE_CHECKING:
    from agentkit.chat_templates import ChatTemplate
    from agentkit.training.rows.row_formats import FormatName
    from agentkit.training.text_encoder import TokenizerLike
    from agentkit.training.trained_spans import TrainOn

__all__ = ["export_command"]

_ExportFormat: TypeAlias = Literal["openai", "sharegpt", "trl", "alpaca"]
_ALL: Final = "all"
_PROGRESS: Final = 1_000  # number of samples between two progress lines
_MAX_NAMES: Final = 20  # maximum number of names in an error


def export_command(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="JSON files with one conversation, or .jsonl files with one conversation per line. "
            "'-' means standard input with one conversation per line."
        ),
    ],
    format: Annotated[_ExportFormat, typer.Option(help="Format of the rows.", show_default=False)],
    source: Annotated[
        str,
        typer.Option("--from", help="Format of the logs: name of a provider, agentscope, langchain or agentkit."),
    ] = "agentkit",
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
            help="Chat template of the model: a built-in name or a path. With --viewer, samples contain the "
            "messages that the template's formatter builds. With a folder of a tokenizer, the summary counts the "
            "trained tokens.",
            show_default=False,
        ),
    ] = None,
    train_on: Annotated[
        Literal["assistant", "all", "last"],
        typer.Option(
            help="Messages whose tokens the summary counts as trained. 'last' also sets the weights in the rows."
        ),
    ] = "assistant",
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Maximum number of tokens of a sample. The summary counts longer samples as cut.",
            show_default=False,
        ),
    ] = None,
    keep_invalid: KeepInvalidOption = False,
) -> None:
    """Write the conversations of logs as rows of training data, one JSON object per line.

    The command prints a summary to standard error. The summary counts samples, refused items (logs, conversations
    or samples), and the losses for each reason. A loss is content that the format cannot represent, or the
    declarations of tools that the template does not write. With a tokenizer, the summary also counts trained
    tokens, and samples that are longer than --max-tokens. If the template omits content or the stop token of a
    trained reply, this is then a loss too.
    """
    check_log_format(source)
    chosen = None if template is None else find_template(template, "--template")
    tokenizer = None if template is None else find_tokenizer(Path(template), "--template")
    if max_tokens is not None and max_tokens < 1:
        raise OptionError("--max-tokens", f"must be at least 1, got {max_tokens}", "Pass a positive integer.")
    if max_tokens is not None and tokenizer is None:
        reason = "tokens cannot be counted without a tokenizer"
        raise OptionError("--max-tokens", reason, "Pass --template with the folder of a tokenizer.")
    export = _Export(format, source, viewer, chosen, tokenizer, train_on, max_tokens, keep_invalid)
    for log in logs:
        for row in export.convert_log(log):
            write_bytes(row)
    export.summary.print(has_tokens=tokenizer is not None)
    export.check_viewer()
    raise typer.Exit(2 if export.summary.refused else 0)


def _read_conversations(log: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the place and the JSON text of each conversation in a log file."""
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
        summary: Counts of the export.
        speakers: Names of agents that wrote replies: the viewer, and at most `_MAX_NAMES` other agents.
    """

    format: FormatName
    source: str
    viewer: str | None
    template: ChatTemplate | None
    tokenizer: TokenizerLike | None
    train_on: TrainOn
    max_tokens: int | None
    keep_invalid: bool
    summary: ExportSummary = field(default_factory=ExportSummary)
    speakers: dict[str, None] = field(default_factory=dict[str, None])

    def __post_init__(self) -> None:
        self._writer = dump_rows(self.format, (), on_loss=self.summary.add_loss)

    def convert_log(self, log: Path) -> Iterator[bytes]:
        """Yields the rows of a log. Prints an error for each log, conversation or sample that is refused."""
        try:
            for place, text in _read_conversations(log):
                yield from self._convert(text, place)
        except AgentkitError as error:
            self._report_refused(error, str(log))

    def _convert(self, text: bytes, place: str) -> Iterator[bytes]:
        try:
            samples = self._create_samples(text, place)
        except AgentkitError as error:
            self._report_refused(error, place)
            return
        while True:
            try:
                sample = next(samples, None)
                if sample is None:
                    return
                rows = self._write_sample(sample)
            except AgentkitError as error:  # the other samples of the conversation can still be exported
                places = [place, f"msgs[{samples.index}]"] if isinstance(samples, LogSamples) else [place]
                self._report_refused(error, *places)
                continue
            yield from rows
            self.summary.samples += 1
            if self.summary.samples % _PROGRESS == 0:
                sys.stderr.write(f"{self.summary.samples:,} samples\n")

    def _report_refused(self, error: AgentkitError, *places: str) -> None:
        self.summary.refused += 1
        print_error(error, *places)

    def check_viewer(self) -> None:
        """Checks that the viewer wrote a reply.

        Raises:
            OptionError: The viewer wrote no reply in any log.
        """
        if self.viewer in (None, _ALL, *self.speakers):
            return
        advice = (
            f"Pass one of {', '.join(map(repr, self.speakers))}." if self.speakers else "Pass logs with replies."
        )
        raise OptionError("--viewer", f"no agent with the name {self.viewer!r} wrote a reply in the logs", advice)

    def _create_samples(self, text: bytes, place: str) -> Iterator[Sample]:
        msgs, options = load_log(text, self.source)
        check_blocks(msgs, self.keep_invalid)
        tools = options.get("tools") or ()
        if tools and self.template is not None and not self.template.check().tools:
            reason = f"the chat template {self.template.name!r} does not write the declarations of tools"
            self.summary.add_loss("tools", reason)
        if self.viewer is None:
            return iter([build_trusted_sample(tuple(check_messages(msgs)), as_tools(tools), (), {}, place)])
        speakers = {msg.name for msg in msgs if is_reply(msg)}
        for name in sorted(speakers):
            if name == self.viewer or len(self.speakers) < _MAX_NAMES:
                self.speakers[name] = None
        viewers = speakers if self.viewer == _ALL else speakers & {self.viewer}
        history = MultiAgentHistory(viewer=self.viewer)
        formatter = None if self.template is None else self.template.formatter(history=history)
        return samples_from_log(msgs, viewers=viewers, formatter=formatter, tools=tools)

    def _write_sample(self, sample: Sample) -> list[bytes]:
        """Returns the rows of a sample as lines, and counts its tokens."""
        sample = self._apply_weights(sample)
        if self.template is not None:
            check_calls(sample, self.template, self.train_on)
        parts = self._tokenize(sample)
        rows = [encode_row(row) for row in self._writer.write(sample)]
        for part in parts:
            self.summary.trained_tokens += part.trained
            self.summary.too_long += self.max_tokens is not None and len(part.ids) > self.max_tokens
            for place, reason in part.losses:
                self.summary.add_loss(place, reason)
        return rows

    def _apply_weights(self, sample: Sample) -> Sample:
        """Returns a sample in which only the last reply is trained, if `train_on` is `last`.

        A sample with weights or without replies is returned unchanged.
        """
        replies = sample.replies if self.train_on == "last" and sample.weights is None else ()
        if not replies:
            return sample
        weights: list[Weight] = [None] * len(sample.msgs)
        for index in replies:
            weights[index] = 0
        weights[replies[-1]] = 1
        return replace(sample, weights=weights)

    def _tokenize(self, sample: Sample) -> list[TokenizedSample]:
        """Returns the tokens of each part into which `split_rewritten` splits a sample.

        Returns an empty list if there is no tokenizer.
        """
        template, tokenizer = self.template, self.tokenizer
        if template is None or tokenizer is None:
            return []
        return [
            tokenize(part, template, tokenizer, train_on=self.train_on, stop_tokens=[])
            for part in split_rewritten(sample, template)
        ]
