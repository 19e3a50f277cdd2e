"""Functions that read conversations and logs."""

from __future__ import annotations

import sys
from typing import Any, Final, cast

from agentkit.cli.files import parse_input
from agentkit.errors import MessageError, OptionError
from agentkit.formatting.formatter import RequestOptions
from agentkit.json_values import make_json_safe
from agentkit.logs.native import list_server_tools, load_native, load_request_options
from agentkit.logs.request_options import LIBRARY_FORMATS
from agentkit.messages.message import Msg
from agentkit.messages.serialization import load_messages
from agentkit.models.registry import load_provider
from agentkit.reprs import describe_value

__all__ = ["check_log_format", "load_log", "read_conversation"]


def check_log_format(source: str) -> None:
    """Checks that logs in the format `source` can be loaded.

    Raises:
        ProviderError: No format has the name `source`.
        OptionError: The package of the format has no loader for logs.
    """
    if source not in LIBRARY_FORMATS and load_provider(source).load_native is None:
        reason = f"the package of provider {source!r} has no loader for logs"
        raise OptionError("--from", reason, "Pass another log format.")


def load_log(text: bytes, source: str) -> tuple[list[Msg], RequestOptions]:
    """Returns the messages and the request options of a log.

    Tools that only the provider can run are omitted. The function prints one line for each omitted tool to stderr.

    Raises:
        MessageError: The text is not a log in the format `source`.
    """
    if source == "agentkit":
        msgs, stored_options = read_conversation(text)
        return msgs, cast("RequestOptions", stored_options)
    log = make_json_safe(parse_input(text))
    if source in LIBRARY_FORMATS:
        return load_native(source, log), {}
    for place, tool_type in list_server_tools(source, log):
        sys.stderr.write(f"agentkit: {place}: tool {tool_type!r} omitted: only {source} runs this tool\n")
    return load_native(source, log), load_request_options(source, log)


_OPTIONS: Final[dict[str, tuple[tuple[type, ...], str, str]]] = {
    "tools": ((list,), "a list", "Pass a list of tools."),
    "tool_choice": ((str, dict, list), "a tool choice", 'Pass a mode, {"name": "…"}, or a list of names.'),
    "response_format": ((dict,), "an object", "Pass a JSON schema."),
}
"""Request options that a conversation may contain.

Each value has the accepted types of an option, and two texts for errors: the expected value and the advice.
"""


def read_conversation(text: bytes) -> tuple[list[Msg], dict[str, Any]]:
    """Parses a conversation. Returns its messages and the request options that it contains.

    Raises:
        MessageError: The text is not a conversation, or a request option has the wrong type.
    """
    data = parse_input(text)
    msgs = load_messages(data)
    if not isinstance(data, dict):
        return msgs, {}
    fields = cast("dict[str, Any]", data)
    options = {name: fields[name] for name in _OPTIONS if fields.get(name) is not None}
    for name, (types, expected, advice) in _OPTIONS.items():
        if name in options and not isinstance(options[name], types):
            raise MessageError(name, f"expected {expected}, got {describe_value(options[name])}", advice)
    return msgs, options
