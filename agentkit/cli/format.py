"""`agentkit format`: conversations in, requests out."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import anyio

from agentkit.budget.budget import Budget
from agentkit.cli import complain
from agentkit.cli.files import check_blocks, each_line, parsed, read, write
from agentkit.errors import AgentkitError, MessageError, ProviderError
from agentkit.formatting.formatter import FormatterBase
from agentkit.history.policies import MultiAgentHistory
from agentkit.ledger.plan import Plan
from agentkit.legalize.media import OnLoss
from agentkit.messages.message import Msg
from agentkit.messages.serialization import load_messages
from agentkit.models.registry import available_providers, load_provider

__all__ = ["FormatOptions", "format_lines", "format_once", "read_conversation", "write_ledgers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """The command's options; `provider` None means every provider."""

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

    def formatters(self) -> dict[str, FormatterBase]:
        """Returns a formatter for each requested provider. With `--all`, reports a provider that does not load."""
        if self.provider is not None:
            return {self.provider: self._formatter(self.provider)}
        found: dict[str, FormatterBase] = {}
        for name in available_providers():
            try:
                found[name] = self._formatter(name)
            except ProviderError as error:
                complain(error)
        return found

    def _formatter(self, name: str) -> FormatterBase:
        provider = load_provider(name)
        kind = provider.multi_agent_formatter if self.multi_agent else provider.chat_formatter
        history = MultiAgentHistory(viewer=self.viewer, frame=self.frame) if self.multi_agent else None
        budget = None if self.max_tokens is None else Budget(self.max_tokens)
        with as_provider_errors(name):
            return kind(
                self.model, history=history, budget=budget, on_loss=self.on_loss, media_roots=self.media_roots
            )


@contextmanager
def as_provider_errors(name: str) -> Generator[None]:
    """Raises an exception of a provider's own code as a ProviderError with the name of the provider."""
    try:
        yield
    except AgentkitError:
        raise
    except Exception as error:
        reason = f"its formatter failed ({type(error).__name__}: {error})"
        raise ProviderError(name, reason, available_providers()) from error


def format_once(file: Path | None, options: FormatOptions) -> int:
    """One conversation, one request (or an object of one a provider), indented."""
    formatters = options.formatters()
    plans = anyio.run(_plans, read(file), formatters, options)
    write_ledgers(plans, options)
    write(_requests(plans, options), indent=2)
    return 0


def format_lines(file: Path | None, options: FormatOptions) -> int:
    """One conversation a line, one request a line; a line that fails gives its error and the rest go on."""
    formatters = options.formatters()

    async def request(line: bytes) -> Any:
        plans = await _plans(line, formatters, options)
        write_ledgers(plans, options)
        return _requests(plans, options)

    return each_line(file, request)


def _requests(plans: Mapping[str, Plan], options: FormatOptions) -> Any:
    if options.provider is not None:
        return plans[options.provider].request
    return {name: plan.request for name, plan in plans.items()}


async def _plans(text: bytes, formatters: Mapping[str, FormatterBase], options: FormatOptions) -> dict[str, Plan]:
    msgs, asked = read_conversation(text)
    check_blocks(msgs, options.keep_invalid, options.ledger)
    plans: dict[str, Plan] = {}
    for name, formatter in formatters.items():
        try:
            with as_provider_errors(name):
                plans[name] = await formatter.plan(msgs, **asked)
        except ProviderError as error:
            if len(formatters) == 1:
                raise
            complain(error)
    return plans


_ASKED = ("tools", "tool_choice", "response_format")


def read_conversation(text: bytes) -> tuple[list[Msg], dict[str, Any]]:
    """The messages of one conversation, and what it asks for besides."""
    data = parsed(text)
    msgs = load_messages(data)
    if not isinstance(data, dict):
        return msgs, {}
    found = cast("dict[str, Any]", data)
    asked = {name: found[name] for name in _ASKED if found.get(name) is not None}
    if not isinstance(asked.get("tools", []), list):
        raise MessageError("tools", "it is no list", "Give a list of tools.")
    if not isinstance(asked.get("tool_choice", ""), str | dict | list):
        raise MessageError("tool_choice", "it is no choice", 'Pass a mode, {"name": "…"}, or a list of names.')
    if not isinstance(asked.get("response_format", {}), dict):
        raise MessageError("response_format", "it is no object", "Give a JSON schema.")
    return msgs, asked


def write_ledgers(plans: Mapping[str, Plan], options: FormatOptions) -> None:
    """What happened to every block, on standard error, if it was asked for."""
    if options.ledger is None:
        return
    if options.ledger == "table":
        for name, plan in plans.items():
            sys.stderr.write(f"Ledger for {name}:\n{plan.ledger}\n")
        return
    ledgers = {name: plan.ledger.to_dict() for name, plan in plans.items()}
    found = ledgers[options.provider] if options.provider is not None else ledgers
    sys.stderr.write(json.dumps(found, ensure_ascii=False) + "\n")
