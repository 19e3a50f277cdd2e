"""Ids of output items of OpenAI Responses: where they are stored, and when they may be sent.

OpenAI ties an item to the next item by their ids. It refuses reasoning that has its id but not the item after it
("was provided without its required following item"). It also refuses an item that has its id but not the reasoning
before it ("was provided without its required 'reasoning' item"). So ids are sent in pairs.
"""

from __future__ import annotations

from agentkit.provider_kit import as_text

__all__ = ["FOLLOWED_BY", "get_accepted_id"]

FOLLOWED_BY = "followed_by"
"""Key in the state fields of reasoning: the id of the item that the model produced after it."""

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""Prefixes of ids by type of item. "Expected an ID that begins with 'fc'." (error text)."""

_MAX_LENGTH = 64
"""Characters of an id. "string too long. Expected a string with maximum length 64" (error text).

Some gateways write longer ids.
"""


def get_accepted_id(item_type: str, id: object) -> str:
    """Returns the id if OpenAI accepts it for an item of this type, or an empty string."""
    text = as_text(id)
    return text if text.startswith(_PREFIXES.get(item_type, "")) and len(text) <= _MAX_LENGTH else ""
