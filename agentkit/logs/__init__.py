"""Converts stored conversations of providers, AgentScope and LangChain to messages.

The input is a log as JSON values, or as objects of an SDK or library. The output is a list of `Msg`, or the tools
and other options of a logged request. Read `native` first. The module `native` has the public functions.
"""

from __future__ import annotations

__all__: list[str] = []
