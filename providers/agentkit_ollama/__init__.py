"""Provider for Ollama's `/api/chat` API.

The formatters need no SDK. Model calls need the extra `ollama`. Read the module `convert` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.provider_kit import import_on_first_use

if TYPE_CHECKING:
    from agentkit_ollama.convert import OllamaChatFormatter as OllamaChatFormatter
    from agentkit_ollama.convert import OllamaMultiAgentFormatter as OllamaMultiAgentFormatter
    from agentkit_ollama.endpoint import ERROR_PATTERNS as ERROR_PATTERNS
    from agentkit_ollama.endpoint import OllamaEndpoint as OllamaEndpoint
    from agentkit_ollama.logs import load_native as load_native
    from agentkit_ollama.provider import PROVIDER as PROVIDER
    from agentkit_ollama.replies import OllamaStreamParser as OllamaStreamParser
    from agentkit_ollama.replies import parse_response as parse_response
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit_ollama.convert": "OllamaChatFormatter OllamaMultiAgentFormatter",
            "agentkit_ollama.endpoint": "ERROR_PATTERNS OllamaEndpoint",
            "agentkit_ollama.logs": "load_native",
            "agentkit_ollama.provider": "PROVIDER",
            "agentkit_ollama.replies": "OllamaStreamParser parse_response",
        },
    )
