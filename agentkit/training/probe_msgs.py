"""Messages of the small conversations that test a chat template, and a cache for the results of these tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.messages.message import Msg

__all__ = ["REPLY", "USER", "cache_results"]

_Result = TypeVar("_Result")

USER: Final = Msg("user", "Userword", "user")
REPLY: Final = Msg("assistant", "Replyword", "assistant")


def cache_results(
    find: Callable[[ChatTemplate, Mapping[str, Any]], _Result],
) -> Callable[[ChatTemplate, Mapping[str, Any]], _Result]:
    """Caches the results of a function whose arguments are a template and the variables of the template."""

    @lru_cache(256)
    def find_once(template: ChatTemplate, now: datetime | None, others: str) -> _Result:
        return find(template, {**json.loads(others), "now": now})

    @wraps(find)
    def find_cached(template: ChatTemplate, variables: Mapping[str, Any]) -> _Result:
        others = {name: value for name, value in variables.items() if name != "now"}
        return find_once(template, variables.get("now"), json.dumps(others, sort_keys=True))

    return find_cached
