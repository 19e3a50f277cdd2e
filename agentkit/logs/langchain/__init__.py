"""Conversion of LangChain messages to `Msg`. LangChain does not need to be installed.

The input is LangChain objects, or JSON values from `dumpd`, `messages_to_dict`, plain dicts or the state of a
graph. Read `messages` first, then `content`, which lists the blocks of a message. `blocks` is the table of types.
Tool calls outside the content are in `tool_calls`.
"""

from __future__ import annotations

__all__: list[str] = []
