"""`find_traced_replies`: finds all replies in the text of one rendering, if their positions are certain.

`ChatTrace.ends` divides the rendered text into one part for each message. In the part of a reply, the text of the
reply begins after the generation prompt and ends with the stop token. The generation prompt must occur once in the
part. No message may contain the generation prompt or the stop token, so the template wrote both.

The part of a reply can begin with other text before the generation prompt, such as an end token. This text can
depend on the reply. `ReplySpans` therefore renders the prompt of the first reply after each such text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.jinja_environments.chat_rendering import list_texts
from agentkit.jinja_environments.message_trace import ChatTrace
from agentkit.messages.message import Msg
from agentkit.training.text_spans import Span, count_common_start

__all__ = ["ReplyMarkers", "TracedReply", "find_rewritten_replies", "find_traced_replies"]


@dataclass(frozen=True, slots=True)
class ReplyMarkers:
    """Texts around replies.

    Attributes:
        prompts: The texts of `find_generation_prompts`.
        stop: Stop token after a reply.
        eos: Token that the template can write after the stop token. Empty if there is none.
    """

    prompts: tuple[str, ...]
    stop: str
    eos: str

    def cut_after_stop(self, text: str) -> int | None:
        """Returns the position after the stop token at the end of a text. Returns None without stop token."""
        text = text.rstrip()
        for token in ("", self.eos):
            text = text.removesuffix(token).rstrip()
            if self.stop and text.endswith(self.stop):
                return len(text)
        return None


@dataclass(frozen=True, slots=True)
class TracedReply:
    """Reply in the text of a conversation.

    Attributes:
        span: Text of the reply, without the generation prompt.
        before: Text between the previous message and the generation prompt, and the role of the previous message.
    """

    span: Span
    before: tuple[str, str]


def find_traced_replies(
    text: str, trace: ChatTrace, msgs: Sequence[Msg], replies: Iterable[int], markers: ReplyMarkers
) -> dict[int, TracedReply] | None:
    """Returns replies by index. Returns None if their positions are uncertain.

    Args:
        text: Text of the conversation.
        trace: The same conversation with a generation prompt at its end.
        msgs: The conversation.
        replies: Indexes of all replies.
        markers: Texts around replies.
    """
    if not markers.prompts or not markers.stop or _contain(trace.messages, markers):
        return None
    common = count_common_start(text, trace.text)
    ends = list(_list_ends(trace, msgs))
    found: dict[int, TracedReply] = {}
    for index in replies:
        is_last = index == len(msgs) - 1
        floor, end = ends[index - 1] if index else 0, len(text) if is_last else ends[index]
        prompt = _find_prompt(text[floor:end], markers.prompts)
        if not index or prompt is None or common < (floor + prompt[1] if is_last else end):
            return None
        start = floor + prompt[1]
        stop = markers.cut_after_stop(text[start:end])
        if stop is None:
            return None
        before = msgs[index - 1]
        role = "tool" if before.tool_results else before.role
        found[index] = TracedReply((start, start + stop), (text[floor : floor + prompt[0]], role))
    return found


def find_rewritten_replies(
    text: str, trace: ChatTrace, replies: Sequence[int], markers: ReplyMarkers
) -> dict[int, Span] | None:
    """Returns the spans of replies that later messages may have changed. Returns None if unknown.

    The text must have exactly one generation prompt for each reply, and a stop token before the next generation
    prompt.

    Args:
        text: Text of the conversation.
        trace: The same conversation with a generation prompt at its end.
        replies: Indexes of all replies.
        markers: Texts around replies.
    """
    if not markers.prompts or not markers.stop or _contain(trace.messages, markers):
        return None
    spans: dict[int, Span] = {}
    parts = text.split(markers.prompts[-1])
    position = len(parts[0])
    for index, part in zip(replies, parts[1:], strict=False):
        prompt = next(prompt for prompt in markers.prompts if text.startswith(prompt, position))
        start = position + len(prompt)
        position += len(markers.prompts[-1]) + len(part)
        end = text.find(markers.stop, start, position)
        if end < 0:
            return None
        spans[index] = start, end + len(markers.stop)
    return spans if len(parts) == len(replies) + 1 else None


def _list_ends(trace: ChatTrace, msgs: Sequence[Msg]) -> Iterator[int]:
    """Yields the end of the part of each message. The template reads each tool result as a message of its own."""
    position = 0
    for msg in msgs:
        position += len(msg.tool_results) or 1
        yield trace.ends[position - 1]


def _find_prompt(text: str, prompts: Sequence[str]) -> Span | None:
    """Returns the generation prompt, if the text has exactly one."""
    first = prompts[-1]
    start = text.find(first)
    if start < 0 or text.find(first, start + 1) >= 0:
        return None
    return start, next(start + len(prompt) for prompt in prompts if text.startswith(prompt, start))


def _contain(messages: Iterable[Mapping[str, Any]], markers: ReplyMarkers) -> bool:
    """Returns True if a text of the conversation contains the generation prompt or the stop token."""
    tokens = (markers.prompts[-1].strip() or markers.prompts[-1], markers.stop)
    values = [value for message in messages for key, value in message.items() if key != "role"]
    return any(token in text for text in list_texts(values) for token in tokens)
