"""DeepSeek through the openai SDK."""

from typing import Any, ClassVar

from agentkit_openai import OpenAIChatEndpoint

__all__ = ["DeepSeekEndpoint"]


class DeepSeekEndpoint(OpenAIChatEndpoint):
    """`AsyncOpenAI(base_url="https://api.deepseek.com")`, with the key in DEEPSEEK_API_KEY."""

    provider: ClassVar[str] = "deepseek"
    key: ClassVar[str | None] = "DEEPSEEK_API_KEY"
    address: ClassVar[str | None] = "https://api.deepseek.com"

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """`max_tokens`."""
        return {"max_tokens": max_tokens}
