"""Loaders of conversations from other formats: a provider's logs, AgentScope's and LangChain's dumps.

The input is JSON values or the library's objects, the output a list of `Msg`, or a request's options. Start
reading at `native`, which has the public functions.
"""

from __future__ import annotations

__all__: list[str] = []
