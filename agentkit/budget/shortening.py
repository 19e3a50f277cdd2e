"""Shortening of texts: the beginning and the end remain, with a mark between them."""

from __future__ import annotations

__all__ = ["shorten_middle"]


def shorten_middle(text: str, characters: int, mark: str) -> str:
    r"""Returns a text without its middle.

    Args:
        text: Text with more characters than `characters`.
        characters: Number of characters that remain, half of them from each end.
        mark: Line that takes the place of the middle.

    Example:
        >>> shorten_middle("abcdefgh", 4, "…")
        'ab\n…\ngh'

    """
    return f"{text[: characters - characters // 2]}\n{mark}\n{text[len(text) - characters // 2 :]}"
