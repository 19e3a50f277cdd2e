"""The frame around speakers: how names and texts are written in it, how it is read back, and how it is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, cast

from agentkit.blocks import TextBlock
from agentkit.messages import Msg

__all__ = ["frame_tag", "mark_frame", "read_history", "safe_name", "safe_text"]


class _FrameMark(dict[str, Any]):
    """The metadata of a turn that is a frame: `legalize` writes descriptions in it as lines of the frame."""


def frame_tag(msg: Msg) -> str:
    """The name of the tag around the frame that a turn is; empty for any other turn."""
    return cast("str", msg.metadata["tag"]) if isinstance(msg.metadata, _FrameMark) else ""


def mark_frame(msg: Msg, tag: str) -> None:
    """Mark a turn that the pipeline made as a frame with this tag."""
    _set_metadata(msg, _FrameMark(tag=tag))


_set_metadata = Msg.__dict__["metadata"].__set__

# str.splitlines: "Changed in version 3.2: \v and \f were added"; the rest from its table.
_BREAK = "(?:\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029])"
_BREAKS = re.compile(_BREAK)
_INDENTED = re.compile(f"({_BREAK})  ")
_NEXT_LINE = re.compile("\n(?!  )")
_TO_ESCAPE = re.compile(r"[\\:]|\A\s+|" + _BREAK)
_ESCAPED = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))", re.DOTALL)


@cache
def _openers(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What opens a tag or a control token in a text, and the same when it is escaped already."""
    opened = rf"(/?{re.escape(tag)}|\|)"
    return re.compile(rf"<(\\*){opened}", re.IGNORECASE), re.compile(rf"<\\(\\*){opened}", re.IGNORECASE)


def safe_text(text: str, tag: str) -> str:
    """A text that can neither close the frame nor begin a line of its own; the same if it does not try."""
    if "<" in text:
        text = _openers(tag)[0].sub(r"<\\\1\2", text)
    return text if text.isprintable() else _indented(text)


def _indented(text: str) -> str:
    """The text with two blanks behind every line break."""
    lines = text.splitlines(keepends=True)
    ends_open = _BREAKS.match(text[-1:]) is None
    return "  ".join(lines) + ("" if ends_open else "  ")


def safe_name(name: str, tag: str) -> str:
    """A name that ends at its colon and keeps to its line; the same if it is simple."""
    if name.isidentifier():
        return name
    escaped = _TO_ESCAPE.sub(lambda found: "".join(map(_escape, found[0])), name)
    return _openers(tag)[0].sub(lambda found: f"\\u{{3c}}{found[1]}{found[2]}", escaped)


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}" if _BREAKS.match(character) else f"\\{character}"


def _unescape(name: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], name)


def read_history(
    rendered: str | Iterable[str | Mapping[str, Any] | TextBlock],
    *,
    tags: str = "history",
    timestamps: bool = False,
) -> list[tuple[str, str]]:
    r"""The (speaker, text) pairs of a history in the safe frame, one a text block: the frame's exact inverse.

    `rendered` is the text, or parts in order: strings, TextBlocks, native parts with a `text`, or whole native
    turns. What has no text, such as media, is passed over.

    >>> read_history("<history>\nBob: hi\nMr\\: X: a\n  b\n</history>")
    [('Bob', 'hi'), ('Mr: X', 'a\nb')]
    """
    whole = rendered if isinstance(rendered, str) else _joined(rendered)
    pairs = (
        _utterance(line, tags, timestamps) for body in _bodies(whole, tags) for line in _NEXT_LINE.split(body)
    )
    return [pair for pair in pairs if pair is not None]


def _bodies(text: str, tag: str) -> Iterator[str]:
    """What stands between the frames' tags, in one pass."""
    opening, closing = f"<{tag}>\n", f"\n</{tag}>"
    end = 0
    while (start := text.find(opening, end)) >= 0:
        end = text.find(closing, start + len(opening) - 1)
        if end < 0:
            return
        yield text[start + len(opening) : end]


def _joined(parts: Iterable[str | Mapping[str, Any] | TextBlock]) -> str:
    """Parts as a model reads them: one that leads with no line break of its own gets the server's."""
    first, *rest = [*_texts(parts)] or [""]
    return first + "".join(text if text.startswith("\n") else f"\n{text}" for text in rest)


def _texts(parts: Iterable[str | Mapping[str, Any] | TextBlock]) -> Iterator[str]:
    for part in parts:
        found: object = part.text if isinstance(part, TextBlock) else part
        if isinstance(found, Mapping):
            turn = found
            found = next((turn[key] for key in ("text", "content", "parts") if key in turn), None)
        if isinstance(found, str):
            yield found
        elif isinstance(found, list):
            yield from _texts(cast("list[Any]", found))


_SPEAKER = re.compile(r"((?:\\.|[^\\:\n])*): ")
_STAMP = re.compile(r"\[[^\[\]]*\] ")


def _utterance(line: str, tag: str, timestamps: bool) -> tuple[str, str] | None:
    """Speaker and text of one line; None for a line that only says whose media follow, or what stood there."""
    stamp = _STAMP.match(line) if timestamps else None
    rest = line[stamp.end() :] if stamp else line
    found = _SPEAKER.match(rest)
    if found is None:
        return None
    text = _INDENTED.sub(r"\1", rest[found.end() :])
    return _unescape(found[1]), _openers(tag)[1].sub(r"<\1\2", text)
