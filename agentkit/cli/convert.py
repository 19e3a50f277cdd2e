"""`agentkit convert`: logs and requests of one wire in, requests of another out."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio

from agentkit.cli.files import check_blocks, each_line, parsed, read, write
from agentkit.cli.format import FormatOptions, read_conversation, write_ledgers
from agentkit.errors import OptionError
from agentkit.formatting.formatter import FormatterBase, RequestOptions
from agentkit.json_values import make_json_safe
from agentkit.logs.native import list_server_tools, load_native, load_request_options
from agentkit.messages.message import Msg
from agentkit.messages.serialization import dump_messages
from agentkit.models.registry import load_provider
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool

__all__ = ["ConvertOptions", "convert_lines", "convert_once"]

_OWN = "agentkit"
_DUMPS = frozenset({_OWN, "agentscope", "langchain"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """Whose form the log has; `format` says whose request to make, and how. Its provider None: our stored form."""

    source: str
    format: FormatOptions

    def formatter(self) -> FormatterBase | None:
        """The formatter for the target; None where there is none to make."""
        if self.source not in _DUMPS and load_provider(self.source).load_native is None:
            raise OptionError("--from", f"logs of {self.source!r} cannot be loaded", "Choose another provider.")
        return None if self.format.provider is None else self.format.formatters()[self.format.provider]


def convert_once(file: Path | None, options: ConvertOptions) -> int:
    """One log, one request, indented."""
    write(anyio.run(_converted, read(file), options, options.formatter()), indent=2)
    return 0


def convert_lines(file: Path | None, options: ConvertOptions) -> int:
    """One log a line, one request a line; a line that fails gives its error and the rest go on."""
    formatter = options.formatter()

    async def converted(line: bytes) -> Any:
        return await _converted(line, options, formatter)

    return each_line(file, converted)


async def _converted(text: bytes, options: ConvertOptions, formatter: FormatterBase | None) -> dict[str, Any]:
    msgs, asked = _loaded(text, options.source)
    check_blocks(msgs, options.format.keep_invalid, options.format.ledger)
    if formatter is None or options.format.provider is None:
        return dump_messages(msgs) | _stored(asked)
    plan = await formatter.plan(msgs, **asked)
    write_ledgers({options.format.provider: plan}, options.format)
    return plan.request


def _loaded(text: bytes, source: str) -> tuple[list[Msg], RequestOptions]:
    """The messages of a log, and what else it asks for."""
    if source == _OWN:
        msgs, given = read_conversation(text)
        return msgs, cast("RequestOptions", given)
    found = make_json_safe(parsed(text))
    if source in _DUMPS:
        return load_native(source, found), {}
    msgs, asked = load_native(source, found), load_request_options(found)
    for place, kind in list_server_tools(found):
        sys.stderr.write(f"agentkit: {place}: a tool {kind!r} runs at the provider and was left out\n")
    return msgs, asked


def _stored(asked: RequestOptions) -> dict[str, Any]:
    """What a log asks for, as `agentkit format` reads it beside the messages."""
    stored = {name: _plain(found) for name, found in asked.items() if found is not None}
    return {name: found for name, found in stored.items() if found}


def _plain(found: object) -> Any:
    told: dict[str, Any]
    if isinstance(found, list | tuple):
        return [_plain(item) for item in cast("list[object]", found)]
    if isinstance(found, Tool):
        told = {"name": found.name, "description": found.description, "parameters": found.parameters}
        return told if found.strict is None else {**told, "strict": found.strict}
    if isinstance(found, ToolChoice):
        if found.names:
            return {"mode": found.mode, "names": [*found.names]}
        return {"name": found.name} if found.mode == "tool" else found.mode
    if isinstance(found, OutputSchema):
        told = {"name": found.name, "schema": found.schema}
        told |= {} if found.strict is None else {"strict": found.strict}
        return {**told, "description": found.description} if found.description else told
    return found
