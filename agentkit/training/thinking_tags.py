"""`find_thinking_tags`: finds the thinking tags that a chat template writes even if the thinking is empty.

The template of Qwen3, for example, writes an empty pair `<think>` and `</think>` before a reply without thinking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import AgentkitError
from agentkit.messages.blocks import TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.training.generation_prompt import find_generation_prompts
from agentkit.training.probe_msgs import REPLY, USER, cache_results

__all__ = ["find_thinking_tags"]

_THINKING: Final = Msg("assistant", [ThinkingBlock("Thinkingword"), TextBlock("Replyword")], "assistant")


@cache_results
def find_thinking_tags(template: ChatTemplate, variables: Mapping[str, Any]) -> tuple[str, str] | None:
    """Returns the tags that the template writes before a reply without thinking, such as `<think>` and `</think>`.

    White space at the ends of the tags is removed. Returns None if the template writes no such tags.

    Args:
        template: Chat template.
        variables: Additional variables of the template, such as `enable_thinking`, on which the tags can depend.
    """
    options: dict[str, Any] = {**variables, "add_generation_prompt": False, "validate": False}
    try:
        texts = [template.render(msgs, **options).text for msgs in ([USER, REPLY], [USER, _THINKING])]
    except AgentkitError:
        return None
    without_thinking, with_thinking = (text.rpartition("Userword")[2].partition("Replyword")[0] for text in texts)
    before, middle, after = with_thinking.partition("Thinkingword")
    if not middle or not after.strip() or "".join(without_thinking.split()) != "".join((before + after).split()):
        return None
    # The generation prompt can contain the tags, but the first line of the shortest prompt is only a header.
    prompts = find_generation_prompts(template, variables)
    header = prompts[-1].partition("\n")[0] if prompts else ""
    return before.rpartition(header)[2].strip() if header else before.strip(), after.strip()
