"""Estimates the tokens of a text without a tokenizer. Each kind of character has a measured weight."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock
from typing import Final

__all__ = ["TextCounts", "estimate_text"]

# Maps each ASCII character to a character that names its kind, so that `bytes.count` can count each kind.
_KIND: Final = (
    bytes(
        ord("a" if char.islower() else "A" if char.isupper() else "0" if char.isdigit() else _space or ".")
        for char in map(chr, range(128))
        for _space in [" " if char in " \t" else "\n" if char in "\r\n" else ""]
    )
    + b"." * 128
)

# Weights of characters, in hundredths of a token. The weights were fitted to the counts of o200k_base for
# licenses, manuals, READMEs, Python, TypeScript and JSON. The fit minimizes the sum of the squared relative
# errors. Then the weights were increased by 3 %. For ASCII text, the counts of cl100k_base differ by at most 2 %.
_LOWER, _UPPER, _DIGIT, _MARK, _SPACE, _LINE = 16, 24, 87, 84, 6, 88
_WORD = 34  # added for each space before a lower-case letter
# Base64 text, API keys and hashes need more tokens per character than words do. They also mix upper-case and
# lower-case letters. If the rarer case has more letters than an eighth of the text length, this weight is added
# for each letter above the eighth.
_SCRAMBLED = 120

# Weights of non-ASCII characters, in hundredths of an o200k_base token. cl100k_base needs up to three times as
# many tokens for these characters.
_SCRIPTS: Final = tuple(
    (re.compile(f"[{characters}]+"), weight)
    for characters, weight in (
        ("\u4e00-\u9fff", 83),  # Han characters; measured weights: 62 to 92
        ("\u3000-\u30ff\uff00-\uffef", 85),  # Kana, and Chinese punctuation
        ("\uac00-\ud7af", 84),  # Hangul
        ("\u0400-\u052f", 36),  # Cyrillic
        ("\u0600-\u06ff\u0750-\u077f", 42),  # Arabic
        # Scripts of India, and Thai, Lao, Burmese, Georgian and Khmer.
        ("\u0900-\u0dff\u0e00-\u0eff\u1000-\u10ff\u1780-\u17ff", 50),
        ("\u0370-\u03ff\u0530-\u05ff", 47),  # Greek, Armenian, Hebrew
        ("\u1e00-\u1eff", 70),  # Vietnamese
        ("\u0080-\u024f\u2000-\u2bff", 135),  # symbols, and accented letters, which split a word into more tokens
        ("\U0001f000-\U0001faff\ufe0f\u200d", 150),  # emoji
    )
)
_OTHER = 220  # weight of any character outside the ranges in `_SCRIPTS`
_ASCII: Final = re.compile("[\x00-\x7f]+")


def estimate_text(text: str) -> int:
    """Estimates the tokens of a text. The result is in hundredths of a token, so that sums are integers.

    The estimate differs from o200k_base by at most 10 % for English prose, JSON and code. For Chinese, alone or
    mixed with other text, the difference is at most 25 %. The estimate is more often too high than too low. The
    measured texts are in tests/tokens/corpus.py.
    """
    if text.isascii():
        return _estimate_ascii(text.encode())
    return _estimate_ascii(text.encode("ascii", "ignore")) + _estimate_scripts(_ASCII.sub("", text))


def _estimate_ascii(text: bytes) -> int:
    count = text.translate(_KIND).count
    upper, digit, mark, space, line = count(b"A"), count(b"0"), count(b"."), count(b" "), count(b"\n")
    lower = len(text) - upper - digit - mark - space - line
    scrambled = max(0, 8 * min(upper, lower) - len(text)) * _SCRAMBLED // 8
    marks = mark - count(b"..")  # two adjacent punctuation marks are usually one token, and are counted once
    return (_LOWER * lower + _UPPER * upper + _DIGIT * digit + _MARK * marks + _SPACE * space + _LINE * line) + (
        _WORD * count(b" a") + scrambled
    )


def _estimate_scripts(text: str) -> int:
    total = 0
    for script, weight in _SCRIPTS:
        if not text:
            break
        remaining = script.sub("", text)
        total += weight * (len(text) - len(remaining))
        text = remaining
    return total + _OTHER * len(text)


_ENTRY = 100  # memory of a cache entry in addition to its text, in characters


class TextCounts(dict[str, int]):
    """Cache of token counts by text.

    `counts[text]` returns the count of a text. A text that is not in the cache is counted first.

    Looking up a cached text is fast. Requests contain the same string objects as their messages, and Python caches
    the hash of each string object.

    Args:
        count: Function that counts the tokens of a text.
        limit: Maximum total length of the cached texts, in characters. If the total length exceeds the limit, the
            oldest texts are removed. A text longer than about a quarter of the limit is not cached.
    """

    __slots__ = ("_count", "_limit", "_lock", "_size")

    def __init__(self, count: Callable[[str], int], limit: int = 16_000_000) -> None:
        super().__init__()
        self._count = count
        self._limit = limit
        self._size = 0
        self._lock = Lock()

    def __missing__(self, text: str) -> int:
        result = self._count(text)
        size = len(text) + _ENTRY
        if size <= self._limit // 4:
            with self._lock:  # another thread may have added the text after the lookup
                self._size += 0 if text in self else size
                self[text] = result
                while self._size > self._limit:
                    oldest = next(iter(self))
                    self._size -= len(oldest) + _ENTRY
                    del self[oldest]
        return result

    def __reduce__(self) -> tuple[type[TextCounts], tuple[Callable[[str], int], int]]:
        """Pickles the function and the limit, without the cached counts."""
        return (TextCounts, (self._count, self._limit))
