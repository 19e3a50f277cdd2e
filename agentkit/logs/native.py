"""`load_native`: converts logs of any provider, of AgentScope or of LangChain to messages."""

from __future__ import annotations

from agentkit.argument_checks import check_option
from agentkit.errors import ProviderError
from agentkit.loggers import get_logger
from agentkit.logs.agentscope import load_agentscope
from agentkit.logs.langchain.messages import load_langchain
from agentkit.logs.parsing import parse_log_text
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

_LOADERS = {
    "agentkit": load_messages,
    "agentscope": load_agentscope,
    "langchain": load_langchain,
}


def load_native(provider: str | Provider, log: object) -> list[Msg]:
    """Returns the messages of a log. The system prompt comes first.

    If nothing is lost, a formatter of the same provider builds the logged request again from these messages. A
    block that cannot be read becomes an `InvalidBlock`. A block that only the provider understands becomes an
    `OpaqueBlock`. Cache markers are omitted, and `list_cache_markers` returns their places.
    `load_request_options` loads the tools and the other options of a request.

    Args:
        provider: Provider that defines the format of the log, as a name or a `Provider`. Also accepts the formats
            `agentscope`, `langchain` and `agentkit`.
        log: List of messages, or complete request, as Python values or JSON text. For a request, pass the
            arguments of the SDK call, or the request body. The values may also be SDK objects.

    Raises:
        MessageError: The log is not in this format, or refers to messages that only the server stores. Keys with
            such references are OpenAI's `previous_response_id`, `conversation` and `prompt`, Gemini's
            `cachedContent`, and DashScope's `session_id` and `memory_id`.
        ProviderError: No provider has this name, or the package of the provider has no loader.
    """
    if provider != "agentkit":
        log = parse_log_text(log)
    if isinstance(provider, str):
        loader = _LOADERS.get(provider)
        if loader is not None:
            return loader(log)
        provider = load_provider(provider)
    check_option("provider", provider, Provider, "Pass a name or a Provider.")
    if provider.load_native is None:
        raise ProviderError(
            provider.name, "the package has no loader for logs", [*_LOADERS, *available_providers()]
        )
    markers = list_cache_markers(provider, log)
    if markers:
        _LOG.info("%d cache marker(s) omitted; the first is at %s", len(markers), markers[0])
    return provider.load_native(log)
