"""`agentkit read`: native replies and recorded streams in, messages out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from agentkit.cli.files import check_blocks, each_line, parsed, read, write
from agentkit.errors import MessageError, OptionError
from agentkit.json_values import make_json_safe
from agentkit.messages.message import Msg
from agentkit.models.registry import load_provider
from agentkit.replies.parser import StreamParserBase

__all__ = ["read_lines", "read_once"]

_FIELD = re.compile(rb"\A(\xef\xbb\xbf)?\s*(data:|event:|id:|retry:|:)")
"""How server-sent events begin: a field of an event, or a comment."""


def read_once(file: Path | None, provider: str, keep_invalid: bool) -> int:
    """One reply: a response, the list of its events, or the raw text of its stream."""
    parser = _parser(provider)
    write(_told(_reply(read(file), parser), keep_invalid), indent=2)
    return 0


def read_lines(file: Path | None, provider: str, keep_invalid: bool) -> int:
    """One reply a line: an object is a response, a list its events, a string raw text of the stream."""
    parser = _parser(provider)

    async def told(line: bytes) -> Any:
        return _told(_from_json(parsed(line), parser), keep_invalid)

    return each_line(file, told)


def _parser(provider: str) -> type[StreamParserBase]:
    parser = load_provider(provider).parser
    if parser is None:
        raise OptionError("--provider", f"replies of {provider!r} cannot be read", "Choose another provider.")
    return parser


def _told(msg: Msg, keep_invalid: bool) -> dict[str, Any]:
    check_blocks([msg], keep_invalid)
    reply = (msg.metadata or {}).get("reply", {})
    return {
        "message": msg.to_dict(),
        "usage": msg.usage.to_dict() if msg.usage else None,
        "finish_reason": reply.get("finish_reason"),
    }


def _reply(text: bytes, parser: type[StreamParserBase]) -> Msg:
    """A reply whose form its text shows."""
    try:
        found = parsed(text)
    except MessageError as error:
        if not _is_stream(text):
            reason = f"this is neither JSON nor a recorded stream: {error.reason}"
            raise MessageError("input", reason, "Give a response, its events, or server-sent events.") from None
        return _from_chunks([text], parser)
    return _from_json(found, parser)


def _is_stream(text: bytes) -> bool:
    """Returns True for the text of a stream: server-sent events, or a JSON value on each line."""
    if _FIELD.match(text):
        return True
    try:
        return isinstance(parsed(text.strip().partition(b"\n")[0]), dict)
    except MessageError:
        return False


def _from_json(found: object, parser: type[StreamParserBase]) -> Msg:
    if isinstance(found, dict):
        return parser.parse_response(make_json_safe(cast("object", found)))
    if isinstance(found, str):
        return _from_chunks([found], parser)
    if isinstance(found, list):
        return _from_chunks(cast("list[Any]", found), parser)
    reason = f"expected a response, its events or raw text, found {type(found).__name__}"
    raise MessageError("input", reason, "Give an object, a list or a string.")


def _from_chunks(chunks: list[Any], parser: type[StreamParserBase]) -> Msg:
    reading = parser()
    for at, chunk in enumerate(chunks):
        if not isinstance(chunk, str | bytes | dict):
            reason = f"expected an event, found {type(chunk).__name__}"
            raise MessageError(f"events[{at}]", reason, "Give objects, or raw text.")
        reading.feed(make_json_safe(cast("object", chunk)) if isinstance(chunk, dict) else chunk)
    msg = reading.finish()
    if not _says_anything(msg):
        reason = f"nothing in it is an event of {parser.provider}"
        raise MessageError("input", reason, "Give the stream of this provider, or name another one.")
    return msg


def _says_anything(msg: Msg) -> bool:
    """Whether any event was understood: a model's name alone stands in the events of every provider."""
    reply: dict[str, Any] = (msg.metadata or {}).get("reply", {})
    known = reply.keys() - {"provider", "finish_reason", "model"}
    return bool(msg.content or known or reply.get("finish_reason") != "interrupted")
