"""`agentkit convert`: converts logs and requests of one provider to requests of another."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio

from agentkit.cli.files import check_blocks, parse_input, process_lines, read, write_output
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

_AGENTKIT = "agentkit"
_DUMPS = frozenset({_AGENTKIT, "agentscope", "langchain"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """Options of `agentkit convert`.

    Attributes:
        source: Format of the log.
        format: Options of the request. If `format.provider` is None, the output is stored messages, not a request.
    """

    source: str
    format: FormatOptions

    def formatter(self) -> FormatterBase | None:
        """Returns the formatter for the target provider, or None if the output is stored messages.

        Raises:
            OptionError: The provider of the log has no loader for logs.
        """
        if self.source not in _DUMPS and load_provider(self.source).load_native is None:
            raise OptionError("--from", f"provider {self.source!r} cannot load logs", "Pass another provider.")
        return None if self.format.provider is None else self.format.formatters()[self.format.provider]


def convert_once(file: Path | None, options: ConvertOptions) -> int:
    """Converts one log and writes the request as indented JSON. Returns the exit code."""
    write_output(anyio.run(_convert, read(file), options, options.formatter()), indent=2)
    return 0


def convert_lines(file: Path | None, options: ConvertOptions) -> int:
    """Converts each line of a file from a log to a request. Returns the exit code.

    If a line cannot be converted, an error object is written, and the conversion continues with the next line.
    """
    formatter = options.formatter()

    async def convert(line: bytes) -> Any:
        return await _convert(line, options, formatter)

    return process_lines(file, convert)


async def _convert(text: bytes, options: ConvertOptions, formatter: FormatterBase | None) -> dict[str, Any]:
    msgs, request_options = _load_log(text, options.source)
    check_blocks(msgs, options.format.keep_invalid, options.format.ledger)
    if formatter is None or options.format.provider is None:
        return dump_messages(msgs) | _dump_options(request_options)
    plan = await formatter.plan(msgs, **request_options)
    write_ledgers({options.format.provider: plan}, options.format)
    return plan.request


def _load_log(text: bytes, source: str) -> tuple[list[Msg], RequestOptions]:
    if source == _AGENTKIT:
        msgs, stored_options = read_conversation(text)
        return msgs, cast("RequestOptions", stored_options)
    log = make_json_safe(parse_input(text))
    if source in _DUMPS:
        return load_native(source, log), {}
    for place, tool_type in list_server_tools(source, log):
        sys.stderr.write(f"agentkit: {place}: tool {tool_type!r} omitted: only {source} has such tools\n")
    return load_native(source, log), load_request_options(source, log)


def _dump_options(options: RequestOptions) -> dict[str, Any]:
    stored = {name: _as_json(value) for name, value in options.items() if value is not None}
    return {name: value for name, value in stored.items() if value}


def _as_json(value: object) -> Any:
    fields: dict[str, Any]
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in cast("list[object]", value)]
    if isinstance(value, Tool):
        fields = {"name": value.name, "description": value.description, "parameters": value.parameters}
        return fields if value.strict is None else {**fields, "strict": value.strict}
    if isinstance(value, ToolChoice):
        if value.names:
            return {"mode": value.mode, "names": [*value.names]}
        return {"name": value.name} if value.mode == "tool" else value.mode
    if isinstance(value, OutputSchema):
        fields = {"name": value.name, "schema": value.schema}
        fields |= {} if value.strict is None else {"strict": value.strict}
        return {**fields, "description": value.description} if value.description else fields
    return value
