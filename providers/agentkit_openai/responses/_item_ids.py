"""Ids of output items of OpenAI Responses: where they are kept, and when they may be sent.

The service ties an item to the one after it by their ids. It refuses reasoning that comes with its id and
without the item that followed it ("was provided without its required following item"), and an item that comes
with its id and without the reasoning before it ("was provided without its required 'reasoning' item"). So ids
are sent in pairs.
"""

from __future__ import annotations

from agentkit.provider_kit import as_text

__all__ = ["FOLLOWED_BY", "accepted_id"]

FOLLOWED_BY = "followed_by"
"""Key in the `fields` of reasoning's state: the id of the item that the model produced after it."""

_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""How ids begin, by type of item: "Expected an ID that begins with 'fc'." (error text)."""

_LONGEST = (
    64  # "string too long. Expected a string with maximum length 64" (error text); gateways write longer ones
)


def accepted_id(kind: str, id: object) -> str:
    """Returns the id if the service accepts it for an item of that type, else an empty string."""
    found = as_text(id)
    return found if found.startswith(_PREFIXES.get(kind, "")) and len(found) <= _LONGEST else ""
