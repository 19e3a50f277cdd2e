"""Media that a URL names, or holds."""

from __future__ import annotations

import re

from agentkit import Base64Source, MessageError, Source, URLSource, text_of

__all__ = ["source_of"]

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def source_of(found: object) -> Source | None:
    """The source of a URL or a data URL; None for what is none.

    >>> source_of("data:image/png;base64,AAAA")
    Base64Source(media_type='image/png', data='AAAA', type='base64')
    """
    url = text_of(found)
    held = _DATA_URL.fullmatch(url)
    try:
        return Base64Source(held[1], held[2]) if held else URLSource(url)
    except MessageError:
        return None
