"""Provider package for vLLM, whose server follows OpenAI Chat Completions.

`VLLMChatFormatter` is for conversations of one agent, and `VLLMMultiAgentFormatter` for conversations of many
agents. `VLLMTokenCounter` asks the server for token counts. Requests are sent through the openai SDK, which the
extra `openai` installs. The facts about vLLM come from docs.vllm.ai and the server's source code, read on
2026-11-20 and 2026-11-22.
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
        "thinking.mode": "text",
        # The server opens images with the library PIL, which supports these types. The server option
        # --limit-mm-per-prompt limits the number of media items in a request.
        "media.image": replace(_ANY, types=media_types("image", "png jpeg webp gif bmp tiff")),
        "media.audio": _ANY,
        "media.video": _ANY,
    }
)

_FACTS = (
    ModelFact(
        r".*kimi",
        {"tools.call_ids": None},
        "Kimi K2's template requires unchanged call ids such as `functions.name:0` (tool_call_guidance.md)",
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
    keyless="EMPTY",  # a server requires a key only with the option `--api-key` (vLLM's docs)
    reasoning_field="reasoning",  # current servers read this key; older servers ignore it (vLLM's docs)
    # Older servers send `reasoning_content`, and some servers send both keys.
    reasoning_fields=("reasoning", "reasoning_content"),
    testing="agentkit_vllm.testing",
    media_parts={"image": write_url_part, "audio": write_url_part, "video": write_url_part},
)


class VLLMChatFormatter(OpenAIChatFormatter):
    """Formatter for vLLM. Send a request with `chat.completions.create(model=…, **request)`.

    The `AsyncOpenAI` client needs the `base_url` of the server. Requests follow the rules of the strictest common
    chat templates. A request has at most one system message, at the start. The turns alternate and begin with a
    user turn. Tool call ids have nine letters or digits. Between a tool result and a user turn, the formatter adds
    an assistant turn with the text of the constant `RESULT_TURN`. If a model's chat template has further
    restrictions, pass the option `model_rules`.
    """

    vendor = ROW


class VLLMMultiAgentFormatter(VLLMChatFormatter):
    """Formatter for conversations of many agents, with the request format of `VLLMChatFormatter`."""

    default_history = MultiAgentHistory


PROVIDER = ROW.provider(VLLMChatFormatter, VLLMMultiAgentFormatter)
VLLMChatStreamParser = ROW.parser
load_native = ROW.load_native
parse_response = VLLMChatStreamParser.parse_response
