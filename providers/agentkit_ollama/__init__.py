"""Providers for Ollama's `/api/chat` API, and for its `/api/generate` API in raw mode.

The formatters need no SDK. Model calls need the extra `ollama`. The modules `convert`, `replies` and `logs` are
for `/api/chat`. The package `raw` has the modules `convert` and `replies` for `/api/generate`. Read the module
`convert` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.provider_kit import import_on_first_use

if TYPE_CHECKING:
    from agentkit_ollama.convert import OllamaChatFormatter as OllamaChatFormatter
    from agentkit_ollama.convert import OllamaMultiAgentFormatter as OllamaMultiAgentFormatter
    from agentkit_ollama.endpoint import ERROR_PATTERNS as ERROR_PATTERNS
    from agentkit_ollama.endpoint import OllamaEndpoint as OllamaEndpoint
    from agentkit_ollama.endpoint import OllamaRawEndpoint as OllamaRawEndpoint
    from agentkit_ollama.logs import load_native as load_native
    from agentkit_ollama.provider import PROVIDER as PROVIDER
    from agentkit_ollama.provider import RAW_PROVIDER as RAW_PROVIDER
    from agentkit_ollama.raw.convert import OllamaRawFormatter as OllamaRawFormatter
    from agentkit_ollama.raw.convert import OllamaRawMultiAgentFormatter as OllamaRawMultiAgentFormatter
    from agentkit_ollama.raw.replies import OllamaRawParser as OllamaRawParser
    from agentkit_ollama.replies import OllamaStreamParser as OllamaStreamParser
    from agentkit_ollama.replies import parse_response as parse_response
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit_ollama.convert": "OllamaChatFormatter OllamaMultiAgentFormatter",
            "agentkit_ollama.endpoint": "ERROR_PATTERNS OllamaEndpoint OllamaRawEndpoint",
            "agentkit_ollama.logs": "load_native",
            "agentkit_ollama.provider": "PROVIDER RAW_PROVIDER",
            "agentkit_ollama.raw.convert": "OllamaRawFormatter OllamaRawMultiAgentFormatter",
            "agentkit_ollama.raw.replies": "OllamaRawParser",
            "agentkit_ollama.replies": "OllamaStreamParser parse_response",
        },
    )
