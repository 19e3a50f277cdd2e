"""vLLM's OpenAI-compatible server, as a row of facts over OpenAI Chat Completions.

`VLLMChatFormatter` is for one agent, `VLLMMultiAgentFormatter` for many. `VLLMTokenCounter` asks the server for
token counts. Requests go out through the openai SDK (extra `openai`). Sources: docs.vllm.ai and the source of the
server, read 2026-11-20 and 2026-11-22.
"""

from __future__ import annotations

from dataclasses import replace

from agentkit.provider_kit import MediaRule, ModelFact, MultiAgentHistory, media_types
from agentkit_openai import TEMPLATE_CHAT, OpenAIChatFormatter, OpenAICompatible, write_url_part
from agentkit_vllm.counting import VLLMTokenCounter

__all__ = [
    "PROVIDER",
    "VLLMChatFormatter",
    "VLLMChatStreamParser",
    "VLLMMultiAgentFormatter",
    "VLLMTokenCounter",
    "load_native",
    "parse_response",
]

_ANY = MediaRule(schemes=frozenset({"http", "https"}))

VLLM = TEMPLATE_CHAT.override(
    {
        "name": "vLLM",
        "issuer": "vllm",
        "wire": "vllm",
        "thinking.mode": "text",
        # what the server's PIL opens; how many is a setting of the server: --limit-mm-per-prompt
        "media.image": replace(_ANY, types=media_types("image", "png jpeg webp gif bmp tiff")),
        "media.audio": _ANY,
        "media.video": _ANY,
    }
)

_FACTS = (
    ModelFact(
        r".*kimi",
        {"tools.call_ids": None},
        "Kimi K2's template wants its `functions.name:0` back unchanged (Kimi-K2: tool_call_guidance.md)",
        "2026-11-22",
    ),
)

ROW = OpenAICompatible(
    name="vllm",
    title="VLLM",
    capabilities=VLLM,
    facts=_FACTS,
    address="http://localhost:8000/v1",
    address_variable="VLLM_BASE_URL",
    key="VLLM_API_KEY",
    keyless="EMPTY",  # a server has a key only if it was started with `--api-key` (vLLM's docs)
    reasoning_field="reasoning",  # the request's field in current source; older servers ignore it (vLLM's docs)
    reasoning_fields=("reasoning", "reasoning_content"),  # older servers send the latter, some send both
    testing="agentkit_vllm.testing",
    media_parts={"image": write_url_part, "audio": write_url_part, "video": write_url_part},
)


class VLLMChatFormatter(OpenAIChatFormatter):
    """Formatter for `chat.completions.create(model=…, **request)`, with the server's `base_url`.

    Without a model name the request has the shape that the strictest chat templates accept: one system message,
    the user first, alternating turns (`RESULT_TURN` stands between a tool result and a user turn), and call ids of
    nine letters or digits. `model_rules` declares what else the template of a model refuses.
    """

    vendor = ROW


class VLLMMultiAgentFormatter(VLLMChatFormatter):
    """`VLLMChatFormatter` for conversations of many agents."""

    default_history = MultiAgentHistory


PROVIDER = ROW.provider(VLLMChatFormatter, VLLMMultiAgentFormatter)
VLLMChatStreamParser = ROW.parser
load_native = ROW.load_native
parse_response = ROW.parse_response
