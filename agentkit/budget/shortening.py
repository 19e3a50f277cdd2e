"""Shortening of a text: a note replaces its middle, and its beginning and end remain."""

from __future__ import annotations

__all__ = ["shorten_middle"]


def shorten_middle(text: str, characters: int, mark: str) -> str:
    r"""Returns a text with a note in place of its middle.

    The text has more than `characters` characters. Half of the remaining characters come from its start, and half
    from its end. The note becomes a line of its own.

    Example:
        >>> shorten_middle("abcdefgh", 4, "…")
        'ab\n…\ngh'

    """
    return f"{text[: characters - characters // 2]}\n{mark}\n{text[len(text) - characters // 2 :]}"
