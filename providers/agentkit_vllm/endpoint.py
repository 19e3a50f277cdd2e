"""A vLLM server through the openai SDK."""

from typing import Any, ClassVar

from agentkit_openai import OpenAIChatEndpoint

__all__ = ["VLLMEndpoint"]


class VLLMEndpoint(OpenAIChatEndpoint):
    """`AsyncOpenAI` with the server's address: `base_url`, or VLLM_BASE_URL, else a server on this machine.

    A server asks for a key only if it was started with one (`--api-key`, vLLM's docs): `api_key`, or VLLM_API_KEY.
    """

    provider: ClassVar[str] = "vllm"
    key: ClassVar[str | None] = "VLLM_API_KEY"
    keyless: ClassVar[str | None] = "EMPTY"
    address: ClassVar[str | None] = "http://localhost:8000/v1"
    address_key: ClassVar[str | None] = "VLLM_BASE_URL"

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """`max_tokens`."""
        return {"max_tokens": max_tokens}
