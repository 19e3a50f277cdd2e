"""Default capabilities of OpenAI-compatible vendors, and of servers that write the prompt with a chat template."""

from __future__ import annotations

from agentkit.provider_kit import NameRule
from agentkit_openai._message_keys import MESSAGE_KEYS
from agentkit_openai.capabilities import CHAT

__all__ = ["CLOSED_KEYS", "TEMPLATE_CHAT", "VENDOR_CHAT", "VENDOR_KEYS"]

VENDOR_KEYS = {
    **CHAT.opaque.passthrough_keys,
    "text": frozenset({"refusal", "type", MESSAGE_KEYS, "-message.role"}),
    "tool_use": frozenset({MESSAGE_KEYS}),
}
"""Keys of opaque state, by block type, that are sent back to OpenAI-compatible vendors.

Keys of developer messages and custom tools are missing, because these vendors have neither.
"""

CLOSED_KEYS = {"image": frozenset({"detail"}), "document": frozenset({"title", "filename"})}
"""Keys of opaque state, by block type, that are sent back even if an API refuses unknown keys in messages."""

VENDOR_CHAT = CHAT.override(
    {
        "issuer": None,  # the name of the vendor
        "wire": None,  # the name of the vendor
        "turns.speaker_names": False,
        "tools.allowed": frozenset(),
        "media.audio_by_id": False,
        "media.document": None,
        "media.total": 0,  # 0: the limit is unknown
        "opaque.passthrough_keys": VENDOR_KEYS,
    }
)
"""Capabilities that most OpenAI-compatible vendors share."""

TEMPLATE_CHAT = VENDOR_CHAT.override(
    {
        # vLLM joins the parts of a message with line breaks if the chat template expects a string (vLLM's docs)
        "turns.text_joining": "glued",
        "turns.late_system": "line",  # several chat templates accept only one system message, at the start
        "turns.one_system": True,
        "turns.merge": True,
        "turns.first_user": True,
        "turns.needs_user": True,
        # Chat templates of Mistral and Gemma require alternating turns. Error text: "Conversation roles must
        # alternate". These templates ignore tool results when they check the order.
        "turns.alternate": True,
        # Chat templates of Mistral and Hugging Face require call ids of nine letters or digits. Other templates
        # accept any id.
        "tools.call_ids": NameRule(pattern=r"[A-Za-z0-9]{9}", limit=9),
    }
)
"""Capabilities of servers that write the prompt with a model's chat template.

The rules are those of the strictest common templates, so that all common templates accept the requests.
"""
