"""The frame around speakers: how names and texts are written in it, how it is read back, and how it is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

from agentkit.argument_checks import check_option, check_text
from agentkit.errors import InputError, OptionError
from agentkit.ledger.plan import Plan
from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.blocks import TextBlock
from agentkit.messages.message import Msg

__all__ = [
    "FrameTexts",
    "Rendered",
    "frame_tag",
    "mark_frame",
    "read_history",
    "safe_name",
    "safe_text",
    "strip_speaker_prefix",
]


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


@lru_cache(64)
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


_FRAMED = frozenset({"frame", "line", "speaker"})
"""The origins of the texts that a frame consists of. A description of media has the origin of its block."""


class FrameTexts:
    """The texts of the frames of a request, as the history policy wrote them; found when they are first asked for.

    Attributes: `tag`, `timestamps` and `is_safe`, the options of the policy; `opening`, what the first frame
    begins with.
    """

    def __init__(
        self,
        turns: TracedConversation | tuple[tuple[str, ...], ...],
        tag: str,
        opening: str,
        *,
        timestamps: bool,
        is_safe: bool,
    ) -> None:
        self.tag = tag
        self.opening = opening
        self.timestamps = timestamps
        self.is_safe = is_safe
        self._turns = turns

    @property
    def frames(self) -> tuple[tuple[str, ...], ...]:
        """The texts of each frame, in order."""
        if isinstance(self._turns, TracedConversation):
            self._turns = tuple(self._find(self._turns))
        return self._turns

    def _find(self, turns: TracedConversation) -> Iterator[tuple[str, ...]]:
        texts: list[str] = []
        for msg, whole in zip(turns.msgs, turns.origins, strict=True):
            if isinstance(whole, int):
                continue  # a message that was sent unchanged
            for block, origin in zip(msg.blocks, whole, strict=True):
                if isinstance(block, TextBlock) and isinstance(origin, str) and origin in _FRAMED:
                    texts.append(block.text)
                    if block.text.endswith(f"</{self.tag}>"):  # no other text of a safe frame ends so
                        yield tuple(texts)
                        texts = []

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles hold the texts alone."""
        return (_frame_texts, (self.frames, self.tag, self.opening, self.timestamps, self.is_safe))


def _frame_texts(
    frames: tuple[tuple[str, ...], ...], tag: str, opening: str, timestamps: bool, is_safe: bool
) -> FrameTexts:
    return FrameTexts(frames, tag, opening, timestamps=timestamps, is_safe=is_safe)


Rendered: TypeAlias = "Plan | str | Iterable[str | Mapping[str, Any] | TextBlock]"
"""What `read_history` reads."""


def read_history(rendered: Rendered, *, tag: str = "history", timestamps: bool = False) -> list[tuple[str, str]]:
    r"""Returns the (speaker, text) pairs of a history in the safe frame, one for each text block.

    Of a Plan, exactly the frames that the history policy wrote are read, from the text of its request: never a
    tool result, a native turn or a system message, whatever text they hold. `tag` and `timestamps` come from the
    policy then.

    A string, or the parts of one frame in order (strings, TextBlocks, native parts with a `text`), is read without
    a check: the caller vouches that agentkit wrote the tags in it. Parts without text, such as media, are skipped.

    >>> read_history("<history>\nBob: hi\nMr\\: X: a\n  b\n</history>")
    [('Bob', 'hi'), ('Mr: X', 'a\nb')]

    Raises:
        OptionError: the plan's policy has the plain frame, which cannot be read back.
        InputError: a text of a frame is not in the plan's request any more, or a request, a message or a whole
            turn was passed.

    """
    if isinstance(rendered, Plan):
        return _read_plan(rendered)
    given: object = rendered
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        kind = type(cast("object", given)).__name__
        reason = f"expected a Plan, a string or the parts of one frame, got {kind}"
        raise InputError("rendered", reason, "Pass the Plan.")
    whole = rendered if isinstance(rendered, str) else _joined(rendered)
    return [pair for body in _bodies(whole, tag) for pair in _utterances(body, tag, timestamps)]


def _utterances(body: str, tag: str, timestamps: bool) -> Iterator[tuple[str, str]]:
    for line in _NEXT_LINE.split(body):
        pair = _utterance(line, tag, timestamps)
        if pair is not None:
            yield pair


def _read_plan(plan: Plan) -> list[tuple[str, str]]:
    written = plan.frames
    if not isinstance(written, FrameTexts):
        return []  # a history policy without frames
    if not written.is_safe and written.frames:
        raise OptionError("history.frame", "the plain frame cannot be read back", "Use frame='safe'.")
    _check_request(plan, written)
    pairs: list[tuple[str, str]] = []
    for number, texts in enumerate(written.frames):
        whole = _joined(texts).removeprefix("" if number else written.opening)
        body = whole.removeprefix(f"<{written.tag}>\n").removesuffix(f"\n</{written.tag}>")
        pairs.extend(_utterances(body, written.tag, written.timestamps))
    return pairs


def _check_request(plan: Plan, written: FrameTexts) -> None:
    """Refuse a plan whose request does not hold the texts of its frames, in their order."""
    leaves = _strings(plan.request)
    leaf, at = next(leaves, ""), 0
    for text in (text for texts in written.frames for text in texts):
        while (found := leaf.find(text, at)) < 0:
            following = next(leaves, None)
            if following is None:
                reason = f"the text of a frame is not in the request: {text[:80]!r}"
                raise InputError("plan.request", reason, "Read a plan whose request was not changed.")
            leaf, at = following, 0
        at = found + len(text)


def _strings(found: object) -> Iterator[str]:
    """The strings of a request, in order."""
    pending = [found]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pending.extend(reversed([*cast("Mapping[str, object]", item).values()]))
        elif isinstance(item, list):
            pending.extend(reversed(cast("list[object]", item)))


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
    for number, part in enumerate(parts):
        found: object = part.text if isinstance(part, TextBlock) else part
        if isinstance(found, Mapping):
            native = cast("Mapping[str, object]", found)
            is_turn, found = "role" in native, native.get("text")
        else:
            is_turn = isinstance(found, Msg)
        if is_turn:
            reason = "a whole turn may hold text that no frame wrote"
            raise InputError(f"rendered[{number}]", reason, "Pass the Plan, or the parts of one frame.")
        if isinstance(found, str):
            yield found


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


def strip_speaker_prefix(msg: Msg, name: str | None = None) -> Msg:
    """The message without the `NAME:` that its first text begins with, if that is its own speaker's.

    Any other text, and any other name, is untouched; so is a text that is nothing but the name, and one that
    the provider signed. `name` is the viewer's, the message's own speaker unless given.
    """
    check_option("msg", msg, Msg, "Pass the message of a reply.")
    check_text("name", name)
    speaker = msg.name if name is None else name
    if not speaker.strip():
        return msg
    for at, block in enumerate(msg.blocks):
        if isinstance(block, TextBlock) and block.text.strip():
            text = _without(block.text, speaker)
            if text is None or (block.state and block.state.thought_signature):
                return msg
            if isinstance(msg.content, str):
                return replace(msg, content=text)
            kept = replace(block, text=text)
            return replace(msg, content=(*msg.content[:at], kept, *msg.content[at + 1 :]))
    return msg


def _without(text: str, name: str) -> str | None:
    for spelling in (name, safe_name(name, "history")):
        found = re.match(rf"\s*{re.escape(spelling)}[ \t]*[:：][ \t]*\n?(?=.*\S)", text, re.DOTALL)
        if found:
            return text[found.end() :]
    return None
