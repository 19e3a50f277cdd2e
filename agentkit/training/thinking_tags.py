"""`find_thinking_tags`: finds the thinking tags that a chat template writes even if the thinking is empty.

The template of Qwen3, for example, writes an empty pair `<think>` and `</think>` before a reply without thinking.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import AgentkitError
from agentkit.messages.blocks import TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.training.generation_prompt import find_generation_prompts

__all__ = ["find_thinking_tags"]

_USER: Final = Msg("user", "Userword", "user")
_REPLY: Final = Msg("assistant", "Replyword", "assistant")
_THINKING: Final = Msg("assistant", [ThinkingBlock("Thinkingword"), TextBlock("Replyword")], "assistant")


def find_thinking_tags(template: ChatTemplate, variables: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the tags that the template writes before a reply without thinking, such as `<think>` and `</think>`.

    White space at the ends of the tags is removed. Returns None if the template writes no such tags.

    Args:
        template: Chat template.
        variables: Additional variables of the template, such as `enable_thinking`, on which the tags can depend.
    """
    others = {name: value for name, value in variables.items() if name != "now"}
    return _find_tags(template, variables.get("now"), json.dumps(others, sort_keys=True))


@lru_cache(256)
def _find_tags(template: ChatTemplate, now: datetime | None, variables: str) -> tuple[str, str] | None:
    options: dict[str, Any] = {**json.loads(variables), "now": now}
    prompts = find_generation_prompts(template, options)
    options |= {"add_generation_prompt": False, "validate": False}
    try:
        texts = [template.render(msgs, **options).text for msgs in ([_USER, _REPLY], [_USER, _THINKING])]
    except AgentkitError:
        return None
    without, whole = (text.rpartition("Userword")[2].partition("Replyword")[0] for text in texts)
    before, middle, after = whole.partition("Thinkingword")
    if not middle or not after.strip() or "".join(without.split()) != "".join((before + after).split()):
        return None
    # The generation prompt can contain the tags, but the first line of the shortest prompt is only a header.
    header = prompts[-1].partition("\n")[0] if prompts else ""
    return before.rpartition(header)[2].strip() if header else before.strip(), after.strip()
