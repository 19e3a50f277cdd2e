"""Texts that depend only on an adapter and a signature. Each text is created once and then cached."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.messages.message import Msg
from agentkit.prompts.signature import Signature

if TYPE_CHECKING:
    from agentkit.prompts.adapter import Adapter

__all__ = ["as_cache_key", "create_system_message", "create_text"]

_AnySignature: TypeAlias = type[Signature[Any]]


def create_system_message(adapter: Adapter, signature: _AnySignature) -> Msg:
    """Returns the system message. Equal texts share one `Msg` object, so that its cached token count is reused."""
    return _cached_message(create_text(adapter, signature, "format_system_message"))


@lru_cache(256)
def _cached_message(text: str) -> Msg:
    return Msg("system", text, "system")


def create_text(adapter: Adapter, signature: _AnySignature, method: str) -> str:
    """Returns and caches the text that a method of the adapter returns for the signature."""
    try:
        return _cached_text(as_cache_key(adapter), signature, method)
    except TypeError:  # an adapter class of an application may have a field that cannot be hashed
        return str(getattr(adapter, method)(signature))


@lru_cache(512)
def _cached_text(adapter: Adapter, signature: _AnySignature, method: str) -> str:
    return str(getattr(adapter, method)(signature))


def as_cache_key(adapter: Adapter) -> Adapter:
    """Returns an equal adapter without `observe`, because a cache would keep this function alive."""
    fallback = None if adapter.fallback is None else as_cache_key(adapter.fallback)
    if adapter.observe is None and fallback is adapter.fallback:
        return adapter
    key = copy(adapter)
    object.__setattr__(key, "observe", None)
    object.__setattr__(key, "fallback", fallback)
    return key
