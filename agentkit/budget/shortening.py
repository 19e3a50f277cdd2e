"""Shortening of a text: a note replaces its middle, and its beginning and end remain."""

from __future__ import annotations

__all__ = ["shorten_middle"]


def shorten_middle(text: str, characters: int, mark: str) -> str:
    r"""Returns a text with a note in place of its middle.

    Args:
        text: Text with more than `characters` characters.
        characters: Number of characters that remain, half from the start and half from the end.
        mark: Note that replaces the middle. The note becomes a line of its own.

    Example:
        >>> shorten_middle("abcdefgh", 4, "…")
        'ab\n…\ngh'

    """
    return f"{text[: characters - characters // 2]}\n{mark}\n{text[len(text) - characters // 2 :]}"
