"""Texts that depend only on an adapter and a signature. For some adapter classes, the texts are cached."""

from __future__ import annotations

from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
    """Returns the text that a method of the adapter returns for the signature.

    The text is cached if `as_cache_key` returns a key for the adapter.
    """
    key = as_cache_key(adapter)
    return str(getattr(adapter, method)(signature)) if key is None else _cached_text(key, signature, method)


@lru_cache(512)
def _cached_text(adapter: Adapter, signature: _AnySignature, method: str) -> str:
    return str(getattr(adapter, method)(signature))


_CACHED_CLASSES: Final = frozenset(
    {
        ("agentkit.prompts.chat_adapter", "ChatAdapter"),
        ("agentkit.prompts.json_adapter", "JSONAdapter"),
        ("agentkit.prompts.xml_adapter", "XMLAdapter"),
    }
)
"""Modules and names of the adapter classes whose equal objects write equal texts."""


def as_cache_key(adapter: Adapter) -> Adapter | None:
    """Returns an adapter that writes the same texts as `adapter`, or None if these texts are not cached.

    The result has no `observe`, because a cache would keep this function alive. Only the texts of the classes in
    `_CACHED_CLASSES` are cached, because equal adapters of other classes may write different texts. For example, a
    subclass may have attributes that are not compared. Two `PromptAdapter` objects may have equal `params`, such
    as 1 and True, that are written as different texts.
    """
    cls = type(adapter)
    if (cls.__module__, cls.__qualname__) not in _CACHED_CLASSES:
        return None
    fallback = None if adapter.fallback is None else as_cache_key(adapter.fallback)
    if adapter.observe is None and fallback is adapter.fallback:
        return adapter
    key = copy(adapter)
    object.__setattr__(key, "observe", None)
    object.__setattr__(key, "fallback", fallback)
    return key
