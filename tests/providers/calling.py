"""ChatModels whose SDK clients call a loopback server."""

from typing import Any, Final

from agentkit import ChatModel
from agentkit.testing import LoopbackServer

__all__ = ["MODELS", "model_of", "options"]

MODELS: Final = {
    "anthropic": "claude-opus-5",
    "dashscope": "qwen-plus",
    "deepseek": "deepseek-v4",
    "gemini": "gemini-3-pro",
    "openai": "gpt-6-luna",
    "openai-responses": "gpt-6-luna",
}
_NO_RETRIES: Final = frozenset({"gemini", "ollama"})  # their clients try nothing again unless told to
_KEY: Final = "sk-loopback"


def options(provider: str, server: LoopbackServer, retries: int = 0) -> dict[str, Any]:
    """The options of an SDK's client for a server: its address, a key, and how often to try again."""
    found: dict[str, Any] = {"base_url": server.url(provider), "api_key": _KEY}
    return found if provider in _NO_RETRIES else {**found, "max_retries": retries}


def model_of(provider: str, server: LoopbackServer, *, retries: int = 0, **given: Any) -> ChatModel:
    """A model of a provider, at a server."""
    given.setdefault("client_options", options(provider, server, retries))
    return ChatModel(provider, given.pop("model", MODELS.get(provider, "some-model")), **given)
