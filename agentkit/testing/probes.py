"""Checks of a formatter. Each check builds a request for a special case, such as a failed tool result."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final, cast

from agentkit.capabilities.model_facts import apply_facts
from agentkit.formatting.formatter import FormatterBase
from agentkit.history.policies import ChatHistory
from agentkit.messages.blocks import (
    ImageBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.message import Msg
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.request_marks import find_surroundings, iterate_scalars, json_text, walk_json

__all__ = ["PROBES", "SENT"]

SENT: Final = frozenset({"carried", "merged", "moved", "repaired"})
"""Dispositions of blocks whose content is in the request."""

_USER_WORDS: Final = frozenset({"user", "human"})
_ASSISTANT_WORDS: Final = frozenset({"assistant", "model", "bot", "ai"})


def _roles(formatter: FormatterBase) -> Iterator[str]:
    """Checks that turns of the assistant and of the user have different formats and the correct roles."""
    if not isinstance(formatter.history, ChatHistory):
        return
    if formatter.layout.is_rendered:
        yield from _text_of_roles(formatter)
        return
    texts = {"markAsked": "user", "markAnswer": "assistant", "markThanks": "user"}
    request = formatter.lower([Msg("Ann", text, cast("Any", role)) for text, role in texts.items()]).request
    parts = find_surroundings(request, [*texts])
    shapes = {mark: {(key, text.replace(mark, "")) for key, text in part} for mark, part in parts.items()}
    if len(shapes) < len(texts):
        yield "the request joins several turns into one string"
    elif shapes["markAnswer"] in (shapes["markAsked"], shapes["markThanks"]):
        yield "turns of the assistant and of the user have the same format"
    for mark, shape in shapes.items():
        wrong = _ASSISTANT_WORDS if texts[mark] == "user" else _USER_WORDS
        if words := wrong & {text.lower() for _, text in shape}:
            yield f"a turn of the {texts[mark]} is sent with the role {min(words)!r}"


def _text_of_roles(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the text of a prompt shows which turns are from the assistant."""
    prompts = {
        str(formatter.lower([Msg("Ann", "markAsked", "user"), Msg("Ann", "markAnswer", role)]).request)
        for role in ("user", "assistant")
    }
    if len(prompts) == 1:
        yield "turns of the assistant and of the user have the same format"


def _names(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the request has the names of all speakers, in a field or in a text."""
    if isinstance(formatter.history, ChatHistory) and not formatter.capabilities().turns.speaker_names:
        return
    request = formatter.lower(CONVERSATIONS["many speakers"]).request
    texts = [leaf for _, leaf in iterate_scalars(request) if isinstance(leaf, str)]
    for name in ("Ann", "Bob", "Friday"):
        if not any(re.search(rf"\b{name}\b", text) for text in texts):
            yield f"the name of the speaker {name!r} is not sent"


def _error_flag(formatter: FormatterBase) -> Iterator[str]:
    """Checks that a request distinguishes failed tool results from successful tool results."""

    def request(is_error: bool) -> str:
        result = ToolResultBlock("c1", "look", "resultOne", is_error=is_error)
        return json_text(formatter.lower([*_call({"place": "callOne"}), Msg("tools", [result], "user")]).request)

    if request(False) == request(True):
        yield "a failed tool result is sent in the same way as a successful tool result"


def _arguments(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the request has the unchanged arguments of a tool call, as an object or as JSON text."""
    arguments: dict[str, Any] = {"place": "callOne", "more": {"list": ["Köln", 2.5, None, True], "empty": {}}}
    msgs = [*_call(arguments), Msg("tools", [ToolResultBlock("c1", "look", "resultOne")], "user")]
    if formatter.layout.is_rendered:
        text = str(formatter.lower(msgs).request[formatter.layout.turns])
        for word in ("callOne", "Köln", "2.5"):
            if word not in text:
                yield f"the text of the prompt does not contain the value {word!r} of the arguments"
        return
    if not any(value == arguments for value in _values(formatter.lower(msgs).request)):
        yield "the request changes the arguments of a tool call"


def _media_type(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the media type of an image is correct if the request contains a media type."""
    image = ImageBlock.from_bytes(_PNG, "image/png")
    request = formatter.lower([Msg("Ann", [TextBlock("markAsked"), image], "user")]).request
    texts = [leaf for _, leaf in iterate_scalars(request) if isinstance(leaf, str)]
    types = {match[1] or match[2] for match in map(_MEDIA_TYPE.match, texts) if match}
    if types and "image/png" not in types:
        yield f"an image of the type 'image/png' is sent as {min(types)!r}"


_MEDIA_TYPE: Final = re.compile(
    r"data:([\w.+-]+/[\w.+-]+)[;,]|(image/(?:png|jpe?g|gif|webp|bmp|tiff|heic|avif))\Z"
)
"""Pattern for the start of a data URL, or for the media type of an image."""
_PNG: Final = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000100000000376ef924")
"""Start of a PNG image with one pixel."""


def _call(arguments: dict[str, Any]) -> list[Msg]:
    return [Msg("Ann", "markAsked", "user"), Msg("Friday", [ToolUseBlock("c1", "look", arguments)], "assistant")]


def _values(request: object) -> Iterator[Any]:
    """Yields every nested value in a request. If a string is a JSON object, also yields the parsed object."""
    for _, _, value in walk_json(request):
        yield value
        if isinstance(value, str) and value.startswith("{"):
            with suppress(ValueError):
                yield json.loads(value)


def _own_thinking(formatter: FormatterBase) -> Iterator[str]:
    """Checks that a request has the text or signature of thinking if the ledger lists the thinking as sent."""
    target = formatter.capabilities()
    if target.issuer is None or target.thinking.mode == "never":
        return
    proofs = {name: f"cHJvb2Zf{name}" for name in target.thinking.required_proof - {"redacted_data"}}
    thinking = ThinkingBlock("markThought", OpaqueState(target.issuer, **cast("Any", proofs)))
    turn = Msg("Friday", [thinking, ToolUseBlock("c1", "look", {"place": "callOne"})], "assistant")
    result = Msg("tools", [ToolResultBlock("c1", "look", "resultOne")], "user")
    plan = formatter.lower([Msg("Ann", "markAsked", "user"), turn, result])
    entry = next(entry for entry in plan.ledger.entries if entry.place == "msgs[1].content[0]")
    wanted = [*proofs.values()] if target.thinking.mode == "signed" and proofs else ["markThought"]
    text = json_text(plan.request)
    if entry.disposition.word in SENT and not any(value in text for value in wanted):
        yield f"thinking is not sent back, but the ledger lists the thinking as {entry.disposition.word}"


def _foreign_thinking(formatter: FormatterBase) -> Iterator[str]:
    """Checks that a request contains no signature of thinking from another provider.

    If the ledger lists the thinking as dropped, the request must not contain the text of the thinking either.
    """
    plan = formatter.lower(CONVERSATIONS["thinking from another provider"])
    dispositions = {entry.place: entry.disposition.word for entry in plan.ledger.entries}
    texts = [leaf for _, leaf in iterate_scalars(plan.request)]
    if "xyz" in texts or ("hm" in texts and dispositions["msgs[1].content[0]"] == "dropped"):
        yield "thinking from another provider is in the request"


def _facts(formatter: FormatterBase) -> Iterator[str]:
    """Checks that the formatter applies each `ModelFact` of the provider to the capabilities of the model."""
    formatter_class = type(formatter)
    for fact in formatter_class.facts:
        model = re.sub(r"\W", "", fact.pattern)
        expected = apply_facts(formatter_class.base, model, formatter_class.facts)
        actual = formatter_class(model).capabilities()
        for name in fact.changes:
            value, wanted = attrgetter(name)(actual), attrgetter(name)(expected)
            if value != wanted:
                yield f"the `ModelFact` for {model!r} is not applied: {name} is {value!r}, expected {wanted!r}"


PROBES: Final[tuple[Callable[[FormatterBase], Iterator[str]], ...]] = (
    _roles,
    _names,
    _error_flag,
    _arguments,
    _media_type,
    _own_thinking,
    _foreign_thinking,
    _facts,
)
