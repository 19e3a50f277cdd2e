"""Converts LangChain messages to `Msg`. LangChain does not need to be installed.

The input is a list of LangChain objects or dicts, the output of `dumpd` or `messages_to_dict`, or the state of a
graph. Read `messages` first, then `content`, which returns the blocks of a message. The module `blocks` converts
each block according to its type.
"""

from __future__ import annotations

__all__: list[str] = []
