"""`agentkit convert`: converts a log in one provider's format to a request in another provider's format."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, cast

import typer

from agentkit.cli.files import check_blocks
from agentkit.cli.format import FormatOptions, write_ledgers
from agentkit.cli.lines import run_conversion
from agentkit.cli.logs import check_log_format, load_log
from agentkit.cli.options import (
    FileArgument,
    KeepInvalidOption,
    LedgerFormatOption,
    LogFormatOption,
    MaxTokensOption,
    MediaRootsOption,
    ModelOption,
    MultiAgentOption,
    OnLossOption,
    ViewerOption,
)
from agentkit.formatting.formatter import FormatterBase, RequestOptions
from agentkit.messages.serialization import dump_messages
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool

__all__ = ["convert_command"]


def convert_command(
    source: LogFormatOption,
    target: Annotated[
        str, typer.Option("--to", help="Provider to build the request for, or agentkit for agentkit's own format.")
    ],
    file: FileArgument = None,
    multi_agent: MultiAgentOption = False,
    viewer: ViewerOption = None,
    model: ModelOption = None,
    max_tokens: MaxTokensOption = None,
    on_loss: OnLossOption = "describe",
    media_root: MediaRootsOption = None,
    ledger: LedgerFormatOption = None,
    keep_invalid: KeepInvalidOption = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Read one log per line, and write one request per line.")
    ] = False,
) -> None:
    """Convert a log in one provider's format to a request in another provider's format.

    The log is a JSON list of messages, or a complete request. The tools, the tool choice and the response format
    of a request are also converted.
    """
    options = FormatOptions(
        provider=None if target == "agentkit" else target,
        multi_agent=multi_agent or viewer is not None,
        viewer=viewer,
        frame="safe",
        model=model,
        max_tokens=max_tokens,
        on_loss=on_loss,
        media_roots=tuple(media_root or ()),
        ledger=ledger,
        keep_invalid=keep_invalid,
    )
    formatter = _create_formatter(source, options)
    convert = partial(_convert, source=source, options=options, formatter=formatter)
    raise typer.Exit(run_conversion(file, convert, lines=lines))


def _create_formatter(source: str, options: FormatOptions) -> FormatterBase | None:
    check_log_format(source)
    return None if options.provider is None else options.formatters()[options.provider]


async def _convert(
    text: bytes, source: str, options: FormatOptions, formatter: FormatterBase | None
) -> dict[str, Any]:
    msgs, request_options = load_log(text, source)
    check_blocks(msgs, options.keep_invalid, options.ledger)
    if formatter is None or options.provider is None:
        return dump_messages(msgs) | _dump_options(request_options)
    plan = await formatter.plan(msgs, **request_options)
    write_ledgers({options.provider: plan}, options)
    return plan.request


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
