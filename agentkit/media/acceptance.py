"""What stands in the way of media, and how it is told."""

from __future__ import annotations

import re

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import Kind
from agentkit.messages.media_types import is_text_type
from agentkit.messages.sniffing import image_size
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["address", "describe_resize", "rejection_reason", "sanitize"]


def rejection_reason(form: Capabilities, kind: Kind, source: Base64Source | URLSource) -> str | None:
    """Why the target cannot take this source of media in any turn; None if it can."""
    rule, target = form.media.rules[kind], form.name
    if rule is None:
        return f"{target} takes no {kind}"
    if isinstance(source, URLSource):
        if source.scheme in {"http", "https"} and not _HAS_HOST.match(source.url):
            return "its URL names no host"
        if source.scheme not in rule.schemes:
            remote = source.scheme in {"http", "https"}
            return "it is a remote URL, which was not fetched" if remote else f"{target} cannot open its URL"
        known = source.guessed_type
        return None if rule.fetches(kind, known) else f"{target} takes no {sanitize(known)} by URL"
    if not rule.takes(kind, source.media_type):
        return f"{target} takes no {sanitize(source.media_type) or kind}"
    if kind == "document" and source.data and is_text_type(source.media_type) and source.text is None:
        return "it holds no UTF-8 text"
    if rule.magic and source.data and not source.data.startswith(rule.magic):
        return f"its data is no {kind} that {target} knows"
    return None


def sanitize(name: str | None) -> str:
    """An identifier of the caller's as a sentence may show it: nothing that could end the sentence."""
    return re.sub(r"[^\w.+/ -]+", "_", name or "")[:64]


def describe_resize(before: Base64Source | URLSource, after: Base64Source) -> str:
    """What became of a picture."""
    old = image_size(before) if isinstance(before, Base64Source) else None
    new = image_size(after)
    if old is None or new is None or old == new:
        return "a picture encoded anew, in less data"
    return f"a picture of {old[0]} x {old[1]} pixels, made {new[0]} x {new[1]}"


_HAS_HOST = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
# Without credentials: what stands before an @ is nobody's business.
_PLAIN_URL = re.compile(r"https?://(?![^/?#]*@)[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{1,300}", re.ASCII)


def address(source: Base64Source | URLSource | None) -> str:
    """A URL that can be shown in a sentence; nothing for any other source."""
    if isinstance(source, URLSource) and _PLAIN_URL.fullmatch(source.url):
        return source.url
    return ""
