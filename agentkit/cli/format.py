"""`agentkit format`: converts conversations to requests."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from agentkit.budget.budget import Budget
from agentkit.cli.exit_codes import print_error
from agentkit.cli.files import check_blocks
from agentkit.cli.lines import run_conversion
from agentkit.cli.logs import read_conversation
from agentkit.cli.options import (
    FileArgument,
    KeepInvalidOption,
    LedgerFormatOption,
    MaxTokensOption,
    MediaRootsOption,
    ModelOption,
    MultiAgentOption,
    OnLossOption,
    ViewerOption,
)
from agentkit.errors import AgentkitError, OptionError, ProviderError
from agentkit.formatting.formatter import FormatterBase
from agentkit.history.policies import MultiAgentHistory
from agentkit.ledger.plan import Plan
from agentkit.legalize.media import OnLoss
from agentkit.models.registry import available_providers, load_provider

__all__ = ["FormatOptions", "format_command", "write_ledgers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """Options of `agentkit format` and `agentkit convert`. The fields have the names of the command-line options.

    If `provider` is None, `format` builds requests for all providers, and `convert` writes agentkit's own format.
    """

    provider: str | None
    multi_agent: bool
    viewer: str | None
    frame: Literal["safe", "plain"]
    model: str | None
    max_tokens: int | None
    on_loss: OnLoss
    media_roots: tuple[Path, ...]
    ledger: Literal["table", "json"] | None
    keep_invalid: bool
    template: str | None = None

    def formatters(self) -> dict[str, FormatterBase]:
        """Returns a dict that maps the name of each requested provider to its formatter.

        With `--all`, the function skips a provider that cannot be loaded, and prints the error to stderr. Without
        `--template`, the function also skips the providers that need a chat template.
        """
        if self.provider is not None:
            return {self.provider: self._formatter(self.provider)}
        formatters: dict[str, FormatterBase] = {}
        for name in available_providers():
            try:
                if self.template is not None or not load_provider(name).layout.is_rendered:
                    formatters[name] = self._formatter(name)
            except ProviderError as error:
                print_error(error)
        return formatters

    def _formatter(self, name: str) -> FormatterBase:
        provider = load_provider(name)
        formatter_class = provider.multi_agent_formatter if self.multi_agent else provider.chat_formatter
        history = MultiAgentHistory(viewer=self.viewer, frame=self.frame) if self.multi_agent else None
        budget = None if self.max_tokens is None else Budget(self.max_tokens)
        has_template = self.template is not None and (provider.layout.is_rendered or self.provider is not None)
        own: dict[str, Any] = {"template": self.template} if has_template else {}
        with as_provider_errors(name):
            return formatter_class(
                self.model,
                history=history,
                budget=budget,
                on_loss=self.on_loss,
                media_roots=self.media_roots,
                **own,
            )


def format_command(
    file: FileArgument = None,
    provider: Annotated[
        str | None, typer.Option(help="Provider to build the request for.", show_default=False)
    ] = None,
    multi_agent: MultiAgentOption = False,
    viewer: ViewerOption = None,
    frame: Annotated[
        Literal["safe", "plain"] | None,
        typer.Option(
            help="Escape names and texts in lines 'NAME: TEXT' (safe, default), or keep them unchanged (plain).",
            show_default=False,
        ),
    ] = None,
    model: ModelOption = None,
    template: Annotated[
        str | None,
        typer.Option(
            help="Chat template for a provider that takes the text of a prompt: a built-in name, or the path of a "
            "folder or file.",
            show_default=False,
        ),
    ] = None,
    max_tokens: MaxTokensOption = None,
    on_loss: OnLossOption = "describe",
    media_root: MediaRootsOption = None,
    ledger: LedgerFormatOption = None,
    keep_invalid: KeepInvalidOption = False,
    every: Annotated[bool, typer.Option("--all", help="Build a request for every provider.")] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Read one conversation per line, and write one request per line.")
    ] = False,
) -> None:
    """Convert a conversation to the request of a provider.

    The conversation is a JSON list of messages, or an object with `messages` and optionally `tools`, `tool_choice`
    and `response_format`.
    """
    if (provider is None) == (not every):
        reason = f"expected either --provider or --all, got {'both' if every else 'neither'}"
        raise OptionError("--provider", reason, "Pass one of these options.")
    options = FormatOptions(
        provider=provider,
        multi_agent=multi_agent or viewer is not None or frame is not None,
        viewer=viewer,
        frame=frame or "safe",
        model=model,
        max_tokens=max_tokens,
        on_loss=on_loss,
        media_roots=tuple(media_root or ()),
        ledger=ledger,
        keep_invalid=keep_invalid,
        template=template,
    )
    formatters = options.formatters()

    async def build_requests(text: bytes) -> Any:
        plans = await _build_plans(text, formatters, options)
        write_ledgers(plans, options)
        return plans[provider].request if provider else {name: plan.request for name, plan in plans.items()}

    raise typer.Exit(run_conversion(file, build_requests, lines=lines))


@contextmanager
def as_provider_errors(name: str) -> Generator[None]:
    """Converts an exception from a provider's code to a `ProviderError` with the name of the provider."""
    try:
        yield
    except AgentkitError:
        raise
    except Exception as error:
        reason = f"the formatter failed ({type(error).__name__}: {error})"
        raise ProviderError(name, reason, available_providers()) from error


async def _build_plans(
    text: bytes, formatters: Mapping[str, FormatterBase], options: FormatOptions
) -> dict[str, Plan]:
    msgs, request_options = read_conversation(text)
    check_blocks(msgs, options.keep_invalid, options.ledger)
    plans: dict[str, Plan] = {}
    for name, formatter in formatters.items():
        try:
            with as_provider_errors(name):
                plans[name] = await formatter.plan(msgs, **request_options)
        except ProviderError as error:
            if len(formatters) == 1:
                raise
            print_error(error)
    return plans


def write_ledgers(plans: Mapping[str, Plan], options: FormatOptions) -> None:
    """Writes the ledger of each plan to standard error if `--ledger` was passed."""
    if options.ledger is None:
        return
    if options.ledger == "table":
        for name, plan in plans.items():
            sys.stderr.write(f"Ledger for {name}:\n{plan.ledger}\n")
        return
    ledgers = {name: plan.ledger.to_dict() for name, plan in plans.items()}
    value = ledgers[options.provider] if options.provider is not None else ledgers
    sys.stderr.write(json.dumps(value, ensure_ascii=False) + "\n")
