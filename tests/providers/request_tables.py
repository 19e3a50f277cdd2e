"""Tables of the expected requests: one JSON file for each provider in `requests/`.

A table has a section for each formatter: `chat`, `multi-agent`, `viewer Friday`, or one of them and a model, as in
`chat with qwen-plus`. A section has the complete request of each conversation.

`python -m tests.providers.request_tables` updates the tables with the requests of the present code. Review each
changed line against the rules of the API before a commit.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from agentkit import MultiAgentHistory, load_provider
from agentkit.provider_kit import FormatterBase
from tests.providers import PROVIDERS
from tests.providers.conversations import CONVERSATIONS

__all__ = ["build_request", "load_table", "write_as_lines"]

_FOLDER: Final = Path(__file__).with_name("requests")
_WIDTH: Final = 180


@cache
def load_table(provider: str) -> dict[str, dict[str, Any]]:
    """Returns the expected requests of a provider by section and conversation."""
    return cast("dict[str, dict[str, Any]]", json.loads((_FOLDER / f"{provider}.json").read_text("utf-8")))


def build_request(provider: str, section: str, name: str) -> dict[str, Any]:
    """Returns the request of a conversation from the formatter of a section."""
    conversation = CONVERSATIONS[name]
    return _make_formatter(provider, section).lower(conversation.msgs, **conversation.options).request


def _make_formatter(provider: str, section: str) -> FormatterBase:
    history, _, model = section.partition(" with ")
    entry = load_provider(provider)
    if history == "chat":
        return entry.chat_formatter(model or None)
    viewer = history.removeprefix("viewer ") if history != "multi-agent" else None
    return entry.multi_agent_formatter(model or None, history=MultiAgentHistory(viewer=viewer))


def write_as_lines(value: Any, indent: int = 0, start: str = "", end: str = "") -> Iterator[str]:
    """Yields the lines of a JSON value: one line for each array or object that fits.

    An object whose last value is long begins and ends on the lines of this value.
    """
    blanks, text = " " * indent, _dump(value)
    if not value or not isinstance(value, (dict, list)) or len(blanks + start + text + end) <= _WIDTH:
        yield f"{blanks}{start}{text}{end}"
        return
    if isinstance(value, list):
        opening, closing, items = "[", "]", [("", item) for item in cast("list[Any]", value)]
    else:
        pairs = cast("dict[str, Any]", value)
        opening, closing, items = "{", "}", [(f"{_dump(name)}: ", item) for name, item in pairs.items()]
    *first, (last_key, last) = items
    line = "".join(f"{key}{_dump(item)}, " for key, item in first)
    if opening == "{" and len(line) < _WIDTH / 2:
        yield from write_as_lines(last, indent, f"{start}{{{line}{last_key}", f"}}{end}")
        return
    yield f"{blanks}{start}{opening}"
    for key, item in first:
        yield from write_as_lines(item, indent + 1, key, ",")
    yield from write_as_lines(last, indent + 1, last_key)
    yield f"{blanks}{closing}{end}"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _update_tables() -> None:
    for provider in PROVIDERS:
        table = load_table(provider)
        table["chat"] = dict.fromkeys(CONVERSATIONS)
        for section, requests in table.items():
            for name in requests:
                requests[name] = build_request(provider, section, name)
        (_FOLDER / f"{provider}.json").write_text("\n".join(write_as_lines(table)) + "\n", "utf-8")


if __name__ == "__main__":
    _update_tables()
