"""LangChain's messages as `Msg`, without LangChain installed.

The input is a dump of any kind (`dumpd`, `messages_to_dict`, plain dicts, the state of a graph), or LangChain's
objects. Start reading at `messages`; `blocks` has the table of content block types.
"""

from __future__ import annotations

__all__: list[str] = []
