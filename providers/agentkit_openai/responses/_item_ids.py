"""Rules for the ids of output items of OpenAI Responses.

OpenAI uses ids to connect reasoning with the item after it. OpenAI refuses reasoning that is sent with its id but
without the next item ("was provided without its required following item"). OpenAI also refuses an item that is
sent with its id but without the reasoning before it ("was provided without its required 'reasoning' item"). So
either both items are sent with their ids, or both are sent without ids.
"""

from __future__ import annotations

from agentkit.provider_kit import as_text

__all__ = ["FOLLOWED_BY", "get_accepted_id"]

FOLLOWED_BY = "followed_by"
"""Key in the opaque state of reasoning, for the id of the item that the model produced after the reasoning."""

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""Required prefixes of item ids, by item type. "Expected an ID that begins with 'fc'." (error text)."""

_MAX_LENGTH = 64
"""Maximum length of an item id in characters. Some gateways create longer ids.

"string too long. Expected a string with maximum length 64" (error text).
"""


def get_accepted_id(item_type: str, id: object) -> str:
    """Returns the id if OpenAI accepts it for an item of this type, otherwise an empty string."""
    text = as_text(id)
    return text if text.startswith(_PREFIXES.get(item_type, "")) and len(text) <= _MAX_LENGTH else ""
