"""Provider for Gemini's `generateContent` API, on the Gemini Developer API and on Vertex AI.

The formatters need no SDK. Model calls need the extra `gemini`. Read the module `convert` first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.provider_kit import import_on_first_use

if TYPE_CHECKING:
    from agentkit_gemini._errors import ERROR_PATTERNS as ERROR_PATTERNS
    from agentkit_gemini.convert import GeminiChatFormatter as GeminiChatFormatter
    from agentkit_gemini.convert import GeminiMultiAgentFormatter as GeminiMultiAgentFormatter
    from agentkit_gemini.counting import GeminiTokenCounter as GeminiTokenCounter
    from agentkit_gemini.endpoint import GeminiEndpoint as GeminiEndpoint
    from agentkit_gemini.logs import load_native as load_native
    from agentkit_gemini.provider import PROVIDER as PROVIDER
    from agentkit_gemini.replies import GeminiStreamParser as GeminiStreamParser
    from agentkit_gemini.replies import parse_response as parse_response
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit_gemini._errors": "ERROR_PATTERNS",
            "agentkit_gemini.convert": "GeminiChatFormatter GeminiMultiAgentFormatter",
            "agentkit_gemini.counting": "GeminiTokenCounter",
            "agentkit_gemini.endpoint": "GeminiEndpoint",
            "agentkit_gemini.logs": "load_native",
            "agentkit_gemini.provider": "PROVIDER",
            "agentkit_gemini.replies": "GeminiStreamParser parse_response",
        },
    )
