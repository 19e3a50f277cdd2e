"""`read_history`: parses the speakers and texts of the history frames in a request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from agentkit.errors import InputError, OptionError
from agentkit.history.frame_escaping import unescape_name, unescape_text
from agentkit.history.frame_texts import FrameTexts, closing_text
from agentkit.ledger.plan import Plan
from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg
from agentkit.reprs import describe_value, shorten_repr

__all__ = ["Rendered", "read_history"]

Rendered: TypeAlias = Plan | str | Iterable[str | Mapping[str, Any] | TextBlock]
"""Input of `read_history`: a Plan, a string, or the parts of one history frame."""


def read_history(rendered: Rendered, *, tag: str = "history", timestamps: bool = False) -> list[tuple[str, str]]:
    r"""Parses history frames with escaped texts. Returns a (speaker, text) pair for each message.

    For a Plan, only the frames that the history policy wrote are parsed. Other text that looks like a frame is
    ignored. The arguments `tag` and `timestamps` are ignored, because the Plan contains both options.

    A string, or a list of the parts of one frame, is parsed without a check. The caller must ensure that agentkit
    wrote the tags. A part is a string, a TextBlock, or an object with a `text` key. Parts without text, such as
    media, are skipped.

    >>> read_history("<history>\nBob: hi\nMr\\: X: a\n  b\n</history>")
    [('Bob', 'hi'), ('Mr: X', 'a\nb')]

    Args:
        rendered: A Plan, a string, or the parts of one frame in order.
        tag: The name of the tags around each frame.
        timestamps: True if each message begins with `[TIMESTAMP] `.

    Raises:
        OptionError: If the plan's history policy writes plain frames, which have no escaping and cannot be parsed.
        InputError: If the plan's request no longer contains the text of a frame. Also if `rendered` is neither a
            Plan, a string nor the parts of a frame. Requests, messages and whole turns are refused, for example.
    """
    if isinstance(rendered, Plan):
        return _read_plan(rendered)
    value: object = rendered
    if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
        found = describe_value(cast("object", value))
        reason = f"expected a Plan, a string or the parts of one history frame, got {found}"
        raise InputError("rendered", reason, "Pass the Plan that contains the frames.")
    text = rendered if isinstance(rendered, str) else _join(rendered)
    return [pair for body in _find_bodies(text, tag) for pair in _parse_body(body, tag, timestamps)]


# -- plans -----------------------------------------------------------------------------------------------------


def _read_plan(plan: Plan) -> list[tuple[str, str]]:
    written = plan.frames
    if not isinstance(written, FrameTexts):
        return []  # the history policy writes no frames
    if not written.is_safe and written.frames:
        reason = "expected 'safe', got 'plain': frames without escaping cannot be parsed"
        raise OptionError("history.frame", reason, "Use frame='safe'.")
    _check_request(plan, written)
    pairs: list[tuple[str, str]] = []
    for index, texts in enumerate(written.frames):
        frame = _join(texts).removeprefix("" if index else written.opening)
        body = frame.removeprefix(f"<{written.tag}>\n").removesuffix(closing_text(written.tag))
        pairs.extend(_parse_body(body, written.tag, written.timestamps))
    return pairs


def _check_request(plan: Plan, written: FrameTexts) -> None:
    """Raises InputError unless the plan's request has the texts of all history frames, in order."""
    strings = _list_strings(plan.request)
    string, start = next(strings, ""), 0
    for text in (text for texts in written.frames for text in texts):
        while (position := string.find(text, start)) < 0:
            following = next(strings, None)
            if following is None:
                reason = f"the request does not contain the history frame's text {shorten_repr(text, 80)}"
                raise InputError("plan.request", reason, "Pass a plan with an unchanged request.")
            string, start = following, 0
        start = position + len(text)


def _list_strings(request: object) -> Iterator[str]:
    pending = [request]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pending.extend(reversed([*cast("Mapping[str, object]", item).values()]))
        elif isinstance(item, list):
            pending.extend(reversed(cast("list[object]", item)))


# -- texts -----------------------------------------------------------------------------------------------------


def _find_bodies(text: str, tag: str) -> Iterator[str]:
    """Yields the text between the opening and the closing tag of each history frame."""
    for part in text.split(f"<{tag}>\n")[1:]:
        body, closing, _ = part.partition(closing_text(tag))
        if closing:
            yield body


def _join(parts: Iterable[str | Mapping[str, Any] | TextBlock]) -> str:
    """Joins the texts of a frame's parts. Each part starts a new line."""
    first, *others = [*_list_texts(parts)] or [""]
    return first + "".join(text if text.startswith("\n") else f"\n{text}" for text in others)


def _list_texts(parts: Iterable[str | Mapping[str, Any] | TextBlock]) -> Iterator[str]:
    for index, part in enumerate(parts):
        text: object = part.text if isinstance(part, TextBlock) else part
        if isinstance(text, Mapping):
            native = cast("Mapping[str, object]", text)
            is_turn, text = "role" in native, native.get("text")
        else:
            is_turn = isinstance(text, Msg)
        if is_turn:
            found = shorten_repr(part, 60)
            reason = f"expected a part of a history frame, got a whole turn, which may contain other text: {found}"
            raise InputError(f"rendered[{index}]", reason, "Pass the Plan, or the parts of one frame.")
        if isinstance(text, str):
            yield text


# -- lines -----------------------------------------------------------------------------------------------------

_NEXT_LINE = re.compile("\n(?!  )")
_SPEAKER = re.compile(r"((?:\\.|[^\\:\n])*): ")
_TIMESTAMP = re.compile(r"\[[^\[\]]*\] ")


def _parse_body(body: str, tag: str, timestamps: bool) -> Iterator[tuple[str, str]]:
    for line in _NEXT_LINE.split(body):
        pair = _parse_line(line, tag, timestamps)
        if pair is not None:
            yield pair


def _parse_line(line: str, tag: str, timestamps: bool) -> tuple[str, str] | None:
    """Returns the speaker and the text of a line.

    Returns None if the line has no text after the speaker, or if the line describes media.
    """
    timestamp = _TIMESTAMP.match(line) if timestamps else None
    remaining = line[timestamp.end() :] if timestamp else line
    speaker = _SPEAKER.match(remaining)
    if speaker is None:
        return None
    return unescape_name(speaker[1]), unescape_text(remaining[speaker.end() :], tag)
