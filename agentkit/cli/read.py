"""`agentkit read`: converts native replies and recorded streams to messages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from agentkit.cli.files import check_blocks, parse_input
from agentkit.cli.lines import run_conversion
from agentkit.cli.options import KeepInvalidOption
from agentkit.errors import MessageError, OptionError
from agentkit.json_values import make_json_safe
from agentkit.messages.message import Msg
from agentkit.models.registry import load_provider
from agentkit.replies.parser import StreamParserBase
from agentkit.reprs import describe_value

__all__ = ["read_command"]

_EVENT_START = re.compile(rb"\A(\xef\xbb\xbf)?\s*(data:|event:|id:|retry:|:)")
"""Pattern that matches the beginning of server-sent events: a field of an event, or a comment."""


def read_command(
    provider: Annotated[str, typer.Option(help="Provider of the reply.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(help="File with the reply. '-' or no file means standard input.", show_default=False),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", help="Read one reply per line: an object, a list of events, or a string of raw text."
        ),
    ] = False,
    keep_invalid: KeepInvalidOption = False,
) -> None:
    """Convert a native reply to a message, and write the message, the usage and the finish reason.

    The reply is a response (a JSON object) or a recorded stream. A recorded stream is a JSON list of events, or
    raw text (server-sent events or JSON lines).
    """
    parser = _find_parser(provider)

    async def read_reply(text: bytes) -> Any:
        reply = _parse_value(parse_input(text), parser) if lines else _parse_reply(text, parser)
        return _dump_reply(reply, keep_invalid)

    raise typer.Exit(run_conversion(file, read_reply, lines=lines))


def _find_parser(provider: str) -> type[StreamParserBase]:
    parser = load_provider(provider).parser
    if parser is None:
        reason = f"the package of provider {provider!r} has no parser for replies"
        raise OptionError("--provider", reason, "Pass another provider.")
    return parser


def _dump_reply(msg: Msg, keep_invalid: bool) -> dict[str, Any]:
    check_blocks([msg], keep_invalid)
    reply = (msg.metadata or {}).get("reply", {})
    return {
        "message": msg.to_dict(),
        "usage": msg.usage.to_dict() if msg.usage else None,
        "finish_reason": reply.get("finish_reason"),
    }


def _parse_reply(text: bytes, parser: type[StreamParserBase]) -> Msg:
    try:
        value = parse_input(text)
    except MessageError as error:
        if not _is_stream(text):
            reason = f"neither JSON nor a recorded stream: {error.reason}"
            raise MessageError("input", reason, "Pass a response, its events, or a recorded stream.") from None
        return _parse_chunks([text], parser)
    return _parse_value(value, parser)


def _is_stream(text: bytes) -> bool:
    """Returns True if a text is a raw stream: server-sent events or JSON lines."""
    if _EVENT_START.match(text):
        return True
    try:
        return isinstance(parse_input(text.strip().partition(b"\n")[0]), dict)
    except MessageError:
        return False


def _parse_value(value: object, parser: type[StreamParserBase]) -> Msg:
    if isinstance(value, dict):
        return parser.parse_response(make_json_safe(cast("object", value)))
    if isinstance(value, str):
        return _parse_chunks([value], parser)
    if isinstance(value, list):
        return _parse_chunks(cast("list[Any]", value), parser)
    reason = f"expected a response, its events or raw text, got {describe_value(value)}"
    raise MessageError("input", reason, "Pass a response, a list of events, or a string of raw text.")


def _parse_chunks(chunks: list[Any], parser_class: type[StreamParserBase]) -> Msg:
    parser = parser_class()
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, str | bytes | dict):
            reason = f"expected an event, got {describe_value(chunk)}"
            raise MessageError(f"events[{index}]", reason, "Pass each event as an object or as raw text.")
        parser.feed(make_json_safe(cast("object", chunk)) if isinstance(chunk, dict) else chunk)
    msg = parser.finish()
    if not _has_reply(msg):
        reason = f"the input has no event of {parser_class.provider}"
        raise MessageError("input", reason, "Pass a stream of this provider, or use another --provider.")
    return msg


def _has_reply(msg: Msg) -> bool:
    """Returns True if a message shows that the parser recognized at least one event.

    A model name alone is not sufficient, because events of other providers can also have a key `model`.
    """
    reply: dict[str, Any] = (msg.metadata or {}).get("reply", {})
    facts = reply.keys() - {"provider", "finish_reason", "model"}
    return bool(msg.content or facts or reply.get("finish_reason") != "interrupted")
