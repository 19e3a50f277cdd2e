"""Converts LangChain messages to `Msg`. LangChain does not need to be installed.

The input is LangChain objects, or their JSON values: from `dumpd` or `messages_to_dict`, plain dicts, or the state
of a graph. Read `messages` first, then `content`, which lists the blocks of a message. `blocks` reads each block
by its type. `tool_calls` reads tool calls that are outside the content.
"""

from __future__ import annotations

__all__: list[str] = []
