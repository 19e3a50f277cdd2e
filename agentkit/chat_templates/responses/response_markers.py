"""`MarkerPattern`: pattern of a text that begins or ends a region of a reply. `MarkerFinder` finds such texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from agentkit.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from agentkit.chat_templates.responses.response_fields import ResponseField

__all__ = ["MarkerFinder", "MarkerMatch", "MarkerPattern", "MarkerSide", "compile_pattern"]

MarkerSide: TypeAlias = Literal["open", "close"]
"""`open` for a marker before the text of a field, `close` for a marker after this text."""

_LEFT_CONTEXT: Final = re.compile(r"\(\?<[=!]|\\[bBAGmMKX]|(?<!\[)\^|\(\?r")
"""Pattern that finds the parts of a regular expression whose match depends on earlier text, such as `^`."""

_LOOKAHEAD: Final = re.compile(r"\(\?=(?:\[\\s\\S\]|\.)\*\?((?:[\w\s</>|▁｜:-]|\\[^\w\s])+)\)")
"""Pattern that finds lookaheads for a text at any distance, such as `(?=[\\s\\S]*?</think>)`."""

_LONG: Final = 64  # longer texts get a faster check before the search
_WINDOW: Final = 64  # number of characters in the first window of a search
_CACHED_LENGTH: Final = 100  # maximum length of texts whose searches are cached
_MAX_CACHED: Final = 10_000  # maximum number of cached searches

_PARTS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|\$", re.DOTALL)
"""Pattern that finds these parts of a regular expression: escapes, sets of characters, and `$`."""

_ASSERTIONS: Final = frozenset({"$", r"\b", r"\B", r"\m", r"\M", r"\Z"})
"""Assertions of a regular expression that can depend on the next character, or on the end of the text."""


@dataclass(frozen=True, slots=True)
class MarkerPattern:
    """Pattern of a marker: a text such as `<think>` before or after a region of a reply.

    A reply arrives in pieces, so a piece can end inside a marker. The package regex reports such an end as an
    incomplete match: a match that could continue after the end of the text.

    Attributes:
        pattern: Compiled regular expression for a text that is complete.
        partial: The same expression for a text that can continue. In this expression, an assertion such as `$`
            looks ahead at the next character. If this character has not arrived yet, the match is incomplete.
        unfinished: `partial` with an assertion at its end that always fails, so that only incomplete matches
            remain. The first incomplete match starts where further text may change the result of `partial`.
        needs_context: True if a match may depend on the text before the match.
        required: Text that must occur after the start of each match. Empty if no such text is known.
    """

    pattern: Any
    partial: Any
    unfinished: Any
    needs_context: bool = False
    required: str = ""

    @classmethod
    def read(cls, spec: Mapping[str, Any], key: str, place: str) -> MarkerPattern | None:
        """Reads a marker from the key `key` (one or more texts) or `{key}_pattern` (a regular expression).

        Returns None if both keys are absent.

        Raises:
            OptionError: The marker is invalid, or both keys are present.
            MissingExtraError: The package regex is not installed.
        """
        pattern_key = f"{key}_pattern"
        if key in spec and pattern_key in spec:
            raise OptionError(f"{place}.{key}", f"cannot be combined with {pattern_key!r}", "Pass one of them.")
        if key not in spec and pattern_key not in spec:
            return None
        is_literal = key in spec
        place = f"{place}.{key if is_literal else pattern_key}"
        source = _join_literals(spec[key], place) if is_literal else spec[pattern_key]
        pattern = compile_pattern(source, place)
        needs_context = not is_literal and _LEFT_CONTEXT.search(source) is not None
        lookahead = None if is_literal else _LOOKAHEAD.fullmatch(source)
        required = re.sub(r"\\(.)", r"\1", lookahead[1]) if lookahead else ""
        source_ahead = _PARTS.sub(_look_ahead, source)
        partial, unfinished = (compile_pattern(item, place) for item in (source_ahead, f"(?:{source_ahead})(?!)"))
        return cls(pattern, partial, unfinished, needs_context, required)

    def search(self, text: str, start: int, end: int, *, is_end: bool) -> tuple[Any, int]:
        """Finds the first match.

        Args:
            text: Text in which to search.
            start: Index at which the search starts.
            end: Index after the last character.
            is_end: True if no further text follows.

        Returns:
            Two values: the first match that no further text can change, and the index from which further text may
            change the result. The first value is None if there is no such match. For the marker `</think>`, the
            text `abc</th` gives None and 3.
        """
        if self.required and text.find(self.required, start, end) < 0:
            return None, end if is_end else start
        if is_end:
            return self.pattern.search(text, start, end), end
        if end - start > _LONG and self.unfinished.match(text, start, end, partial=True):
            return None, start
        match = self.partial.search(text, start, end, partial=True)
        if match is None or match.partial:
            return None, end if match is None else match.start()
        unfinished = self.unfinished.search(text, start, end, partial=True)
        safe_end = end if unfinished is None else unfinished.start()
        return (match, safe_end) if match.start() < safe_end else (None, safe_end)


def _look_ahead(match: re.Match[str]) -> str:
    """Returns a part of a regular expression, changed for `MarkerPattern.partial`.

    An assertion such as `$` is extended so that it looks ahead at the next character. Other parts stay unchanged.
    """
    part = match[0]
    return rf"(?:(?=\n[\s\S]|[^\n]){part}|{part})" if part in _ASSERTIONS else part


def _join_literals(value: object, place: str) -> str:
    """Returns a regular expression that matches one of several texts: the longest possible text at each index."""
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and item]
    if not texts or len(texts) != len(items):
        reason = f"expected a non-empty string or a list of such strings, got {value!r:.80}"
        raise OptionError(place, reason, "Pass the text of the marker.")
    return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))


def compile_pattern(source: object, place: str) -> Any:
    """Compiles a regular expression of a response template. A dot matches line breaks too.

    Raises:
        OptionError: The value is not a valid regular expression.
        MissingExtraError: The package regex is not installed.
    """
    try:
        regex: Any = import_module("regex")  # the package has no type annotations
    except ImportError:
        raise MissingExtraError("regex", "templates", "Parsing the reply of a local model") from None
    if not isinstance(source, str):
        reason = f"expected a regular expression, got {source!r:.80}"
        raise OptionError(place, reason, "Pass a regular expression as a string.")
    try:
        return regex.compile(source, regex.DOTALL)
    except regex.error as error:
        raise OptionError(
            place, f"invalid regular expression {source!r:.80} ({error})", "Fix the syntax."
        ) from None


class MarkerMatch(NamedTuple):
    """Marker in the text of a reply.

    Attributes:
        side: `open` or `close`.
        field: Field whose region the marker opens or closes.
        text: Text of the marker.
        captures: Values of the named groups of the marker, without groups that matched no text.
    """

    side: MarkerSide
    field: ResponseField
    text: str
    captures: Mapping[str, str]


_Cache: TypeAlias = dict[str, tuple[MarkerMatch | None, int]]


class MarkerFinder:
    """Finder of the first of several markers in a text.

    Attributes:
        needs_context: True if the match of a marker may depend on the text before the marker.
        is_plain: Function that returns True if no marker starts in a text. False means that a marker may start in
            the text.
    """

    def __init__(self, markers: Sequence[tuple[MarkerSide, ResponseField, MarkerPattern]]) -> None:
        self._markers = tuple(markers)
        self.needs_context = any(marker.needs_context for _, _, marker in self._markers)
        self._cached_length = 0 if self.needs_context else _CACHED_LENGTH
        self._caches: tuple[_Cache, _Cache] = ({}, {})  # one cache for each value of `skips_empty`
        ascii_texts = map(chr, range(128))
        self._plain = set[str]() if self.needs_context else {c for c in ascii_texts if not self._may_start(c)}
        self.is_plain: Callable[[str], bool] = self._plain.issuperset
        candidates = "".join(re.escape(chr(code)) for code in range(128) if chr(code) not in self._plain)
        self._candidate = re.compile(f"[{candidates}\\x80-\\U0010ffff]")

    def _may_start(self, character: str) -> bool:
        """Returns True if a marker may start with a character, or may depend on this character."""
        for _, _, marker in self._markers:
            match, safe_end = marker.search(character, 0, 1, is_end=False)
            if safe_end == 0 or (match is not None and match.start() == 0):
                return True
        return False

    def _find_candidate(self, text: str, start: int) -> int:
        """Returns the index of the first character at which a marker may start, or the length of the text."""
        if self.needs_context:
            return start
        plain = self._plain
        while candidate := self._candidate.search(text, start):
            character = candidate[0]
            if character not in plain:
                if character.isascii() or self._may_start(character):
                    return candidate.start()
                plain.add(character)
            start = candidate.end()
        return len(text)

    def search(self, text: str, start: int, is_end: bool, skips_empty: bool) -> tuple[MarkerMatch | None, int]:
        """Finds the first marker that no further text can change.

        Args:
            text: Text in which to search.
            start: Index at which the search starts.
            is_end: True if no further text follows.
            skips_empty: True to ignore an empty match at `start`, which an earlier search has returned.

        Returns:
            The first marker, and the number of characters between `start` and this marker. If several markers
            start at the same index, the result has the longest of them. If no marker is complete: None, and the
            number of characters between `start` and the first possible start of a marker. The caller must buffer
            the text from this possible start on.
        """
        if is_end or len(text) - start > self._cached_length:
            return self._search_windows(text, start, is_end=is_end, skips_empty=skips_empty)
        cache, key = self._caches[skips_empty], text[start:]
        result = cache.get(key)
        if result is None:
            if len(cache) >= _MAX_CACHED:
                cache.clear()
            result = cache[key] = self._search_windows(text, start, is_end=False, skips_empty=skips_empty)
        return result

    def _search_windows(
        self, text: str, start: int, *, is_end: bool, skips_empty: bool
    ) -> tuple[MarkerMatch | None, int]:
        """Searches in a window from each index at which a marker may start. The window grows if it is too small.

        Without a window, the search for each marker would read all of the remaining text.
        """
        index, size, empty_end = start, _WINDOW, start if skips_empty else -1
        while True:
            first = self._find_candidate(text, index)
            end = min(first + size, len(text))
            is_last = end == len(text)
            marker, count = self._search_window(text, first, end, is_end=is_end and is_last, empty_end=empty_end)
            if marker is not None or is_last:
                return marker, first + count - start
            index, size = first + count, _WINDOW if count else 2 * size

    def _search_window(
        self, text: str, start: int, end: int, *, is_end: bool, empty_end: int
    ) -> tuple[MarkerMatch | None, int]:
        earliest: tuple[MarkerSide, ResponseField, Any] | None = None
        best: tuple[int, int, bool, str] | None = None
        safe_end = end
        for side, field, marker in self._markers:
            match, marker_end = marker.search(text, start, end, is_end=is_end)
            if match is not None and match.end() == match.start() == empty_end:
                is_over = empty_end >= end
                match, marker_end = (
                    (None, end) if is_over else marker.search(text, empty_end + 1, end, is_end=is_end)
                )
            safe_end = min(safe_end, marker_end)
            if safe_end == start < end and not is_end:
                return None, 0
            if match is None:
                continue
            key = (match.start(), match.start() - match.end(), side == "close", field.name)
            if best is None or key < best:
                best, earliest = key, (side, field, match)
        if earliest is None or best is None or (best[0] >= safe_end and not is_end):
            return None, safe_end - start
        side, field, match = earliest
        captures = {name: value for name, value in match.groupdict().items() if value is not None}
        return MarkerMatch(side, field, match[0], captures), best[0] - start
