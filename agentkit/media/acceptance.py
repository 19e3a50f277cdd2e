"""Checks of media against a target's rules, and texts about media for requests and for the ledger."""

from __future__ import annotations

import re

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import Kind
from agentkit.messages.media_types import is_text_type
from agentkit.messages.sniffing import image_size
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["address", "describe_resize", "rejection_reason", "sanitize"]


def rejection_reason(capabilities: Capabilities, kind: Kind, source: Base64Source | URLSource) -> str | None:
    """Returns the reason why a target refuses a media source, or None if the target accepts the source.

    The role of the message with the media has no effect.
    """
    rule, target = capabilities.media.rules[kind], capabilities.name
    if rule is None:
        return f"{target} does not accept {_format_plural(kind)}"
    if isinstance(source, URLSource):
        if source.scheme in {"http", "https"} and not _HAS_HOST.match(source.url):
            return "the URL has no host"
        if source.scheme not in rule.schemes:
            is_remote = source.scheme in {"http", "https"}
            return (
                "the source is a remote URL, which was not fetched"
                if is_remote
                else f"{target} cannot open the URL"
            )
        media_type = source.guessed_type
        return (
            None if rule.fetches(kind, media_type) else f"{target} does not accept {sanitize(media_type)} by URL"
        )
    if not rule.takes(kind, source.media_type):
        return f"{target} does not accept {sanitize(source.media_type) or _format_plural(kind)}"
    if kind == "document" and source.data and is_text_type(source.media_type) and source.text is None:
        return "the data is not UTF-8 text"
    if rule.magic and source.data and not source.data.startswith(rule.magic):
        return f"the data is not in a format that {target} accepts"
    return None


def _format_plural(kind: Kind) -> str:
    return kind if kind == "audio" else f"{kind}s"


def sanitize(name: str | None) -> str:
    """Returns at most 64 characters of an untrusted name, for use inside a sentence.

    Characters such as quotes and line breaks become underscores, because they could end the sentence. None becomes
    an empty string.
    """
    return re.sub(r"[^\w.+/ -]+", "_", name or "")[:64]


def describe_resize(before: Base64Source | URLSource, after: Base64Source) -> str:
    """Returns the ledger reason for an image that a resized or newly encoded copy replaces."""
    old = image_size(before) if isinstance(before, Base64Source) else None
    new = image_size(after)
    if old is None or new is None or old == new:
        return "image encoded again with less data to fit a limit of the API"
    return f"image resized from {old[0]} x {old[1]} to {new[0]} x {new[1]} pixels"


_HAS_HOST = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
# The pattern matches no URL with credentials, so that requests and the ledger never show credentials.
_PLAIN_URL = re.compile(r"https?://(?![^/?#]*@)[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{1,300}", re.ASCII)


def address(source: Base64Source | URLSource | None) -> str:
    """Returns the URL of a media source, for use in a sentence.

    Returns an empty string if there is no http or https URL. Also returns an empty string if the URL has
    credentials, more than about 300 characters, or characters that URLs must not contain.
    """
    if isinstance(source, URLSource) and _PLAIN_URL.fullmatch(source.url):
        return source.url
    return ""
