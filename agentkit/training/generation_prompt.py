"""`find_generation_prompts`: finds the text that a chat template writes before a reply.

For ChatML, this text is `<|im_start|>assistant` and a line break.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import AgentkitError
from agentkit.messages.message import Msg
from agentkit.training.probe_msgs import REPLY, USER, cache_results
from agentkit.training.text_differences import count_common_start

__all__ = ["find_generation_prompts", "locate_generation_prompt"]

_EMPTY: Final = Msg("assistant", "", "assistant")


@cache_results
def find_generation_prompts(template: ChatTemplate, variables: Mapping[str, Any]) -> tuple[str, ...]:
    r"""Returns the texts that a template writes before a reply. Returns an empty tuple if the texts are unknown.

    The first text is the generation prompt. The generation prompt can open thinking, for example
    `<|im_start|>assistant\n<think>\n`. The template then writes only `<|im_start|>assistant\n` before replies
    without thinking and before earlier replies. This shorter text is the last item of the tuple.

    Args:
        template: Chat template.
        variables: Additional variables of the template, such as `enable_thinking`, on which the texts can depend.
    """
    if template.tags is not None:
        before = template.tags.get("assistant", ("", ""))[0]
        return (before,) if before else ()

    def render(*msgs: Msg, add_generation_prompt: bool = False) -> str:
        return template.render(msgs, add_generation_prompt=add_generation_prompt, validate=False, **variables).text

    try:
        closed, opened = render(USER), render(USER, add_generation_prompt=True)
        reply = render(USER, REPLY)
        if not opened.startswith(closed):  # some templates write eos_token after the last message
            closed = closed.removesuffix(template.special_tokens.get("eos_token") or "")
        if opened == closed:  # the template ignores add_generation_prompt, but may leave an empty last reply open
            opened = render(USER, _EMPTY)
            opened = opened if reply.startswith(opened) else ""
    except AgentkitError:
        return ()
    if not opened.startswith(closed) or opened == closed:
        return ()
    texts = {opened[len(closed) :]}
    for text in (reply, _render_earlier(render)):
        first = text[len(closed) : count_common_start(opened, text)]
        texts.add(first if first in texts or "\n" not in first else first[: first.rindex("\n") + 1])
    return tuple(sorted(texts - {""}, key=len, reverse=True))


def _render_earlier(render: Callable[..., str]) -> str:
    """Returns the text of a conversation with a user message after a reply.

    Returns an empty string if the template refuses this conversation.
    """
    try:
        return render(USER, REPLY, USER)
    except AgentkitError:
        return ""


def locate_generation_prompt(text: str, start: int, prompts: Sequence[str]) -> tuple[int, int] | None:
    """Returns the start and end of the generation prompt of a reply. Returns None if no prompt is found.

    A template can place the start of a `{% generation %}` block before, inside or after the generation prompt. The
    function therefore looks for a generation prompt that begins or ends at `start`, or contains `start`.

    Args:
        text: Text of the conversation.
        start: Start of the text that the template marks as the reply.
        prompts: Texts that `find_generation_prompts` returned.
    """
    for prompt in prompts:
        position = text.find(prompt, max(start - len(prompt), 0), start + len(prompt))
        if position >= 0:
            return position, position + len(prompt)
    return None
