"""Logs from elsewhere: a provider's own messages or requests, and the dumps of AgentScope and LangChain."""

from __future__ import annotations

from typing import Any, cast

from agentkit.argument_checks import check_option
from agentkit.errors import MessageError, ProviderError
from agentkit.json_values import native_to_json
from agentkit.loggers import get_logger
from agentkit.logs.agentscope import load_agentscope
from agentkit.logs.langchain.messages import load_langchain
from agentkit.logs.request_options import list_cache_markers, list_server_tools, load_request_options
from agentkit.messages.message import Msg
from agentkit.messages.serialization import load_messages
from agentkit.models.registry import Provider, available_providers, load_provider

__all__ = [
    "list_cache_markers",
    "list_server_tools",
    "load_agentscope",
    "load_langchain",
    "load_native",
    "load_request_options",
]

_LOG = get_logger()

_ELSEWHERE = {
    "agentkit": load_messages,
    "agentscope": load_agentscope,
    "langchain": load_langchain,
}


def load_native(provider: str | Provider, found: object) -> list[Msg]:
    """A conversation that was kept in another form, the system prompt first.

    provider  whose form it is: the name of a provider, or the Provider; `agentscope`, `langchain` or `agentkit`
    found     the messages, or a whole request: the arguments of the SDK's call, or the body that was sent, or the
              JSON text of any of these. The SDK's objects may stand anywhere in it. `load_tools` reads what else
              a request asks for

    A request that names messages which the server stores is refused: OpenAI's `previous_response_id`,
    `conversation` and `prompt`, Gemini's `cachedContent`, DashScope's `session_id` and `memory_id`. The messages
    in it load as a list. Anthropic's `container` holds files, no messages. Cache markers are left out;
    `list_cache_markers` names their places.

    Where nothing is lost, formatting what this gives for the same provider gives the same request. What cannot be
    read is kept as InvalidBlock, a part that only the provider knows as OpaqueBlock. Raises MessageError for what
    is no log of that form, and ProviderError for an unknown one.
    """
    if isinstance(found, str | bytes | bytearray) and provider != "agentkit":
        found = _from_text(found)
    if isinstance(provider, str):
        known = _ELSEWHERE.get(provider)
        if known is not None:
            return known(found)
        provider = load_provider(provider)
    check_option("provider", provider, Provider, "Pass a name or a Provider.")
    if provider.load_native is None:
        raise ProviderError(provider.name, "its logs cannot be loaded", [*_ELSEWHERE, *available_providers()])
    markers = list_cache_markers(found)
    if markers:
        _LOG.info("%d cache marker(s) left out, the first at %s", len(markers), markers[0])
    return provider.load_native(found)


def _from_text(text: str | bytes | bytearray) -> object:
    """What JSON text says, if it is a list or an object; any other text as it is."""
    try:
        found: Any = native_to_json(text)
    except MessageError:
        return text
    return cast("object", found) if isinstance(found, list | dict) else text
