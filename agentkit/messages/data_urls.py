"""Media that a URL names, or holds in itself."""

from __future__ import annotations

import re

from agentkit.errors import MessageError
from agentkit.json_values import text_of
from agentkit.messages.sources import Base64Source, Source, URLSource

__all__ = ["source_of"]

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def source_of(found: object, media_type: str | None = None) -> Source | None:
    """The source of a URL or a data URL; None for what is none. `media_type` is what a URL does not say itself.

    >>> source_of("data:image/png;base64,AAAA")
    Base64Source(media_type='image/png', data='AAAA')
    """
    url = text_of(found)
    held = _DATA_URL.fullmatch(url)
    try:
        return Base64Source(held[1], held[2]) if held else URLSource(url, media_type)
    except MessageError:
        return None
