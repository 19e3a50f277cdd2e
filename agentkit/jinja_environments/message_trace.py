"""`trace_chat`: renders messages, and finds the parts of the text that no later message changes.

The template reads the messages through `_TracedMessages`, which records the last message that the template read.
Templates are deterministic programs. If two conversations start with the same messages, their texts are equal up
to the point at which the template reads the first different message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, overload

from agentkit.jinja_environments.chat_rendering import (
    ChatVariables,
    build_values,
    compile_chat,
    refuse_rendering,
)
from agentkit.jinja_environments.limits import check_size, end_rendering, start_rendering

__all__ = ["ChatTrace", "trace_chat"]


class ChatTrace(NamedTuple):
    """Text of a rendered conversation, and the parts of the text that later messages do not change.

    Attributes:
        text: The text.
        ends: For each message, a number of characters at the start of the text. These characters depend on this
            message and earlier messages, but on no later message. For the last message, the length of the text.
        messages: The messages.
    """

    text: str
    ends: list[int]
    messages: list[dict[str, Any]]


def trace_chat(source: str, variables: ChatVariables, name: str = "chat template") -> ChatTrace:
    """Renders messages with a chat template, and returns the text and its parts.

    A template that uses the list of messages in an unusual way, such as `messages + []`, can fail or write another
    text than with `render_chat`. The caller must compare the texts.

    Args:
        source: Text of the template, without blocks `generation`.
        variables: Variables of the template.
        name: Name of the template in errors.

    Raises:
        TemplateError: The template is invalid, refuses the messages, or exceeds a limit.
        MissingExtraError: The package jinja2 is not installed.
    """
    template, values = compile_chat(source, name).template, build_values(variables)
    count, messages = len(values["messages"]), _TracedMessages(values["messages"])
    pieces, ends, position = list[str](), list[int](), 0
    token = start_rendering(count)
    try:
        for piece in template.root_render_func(template.new_context({**values, "messages": messages})):
            ends += [position] * (min(messages.get_last_read(), count - 1) - len(ends))
            pieces.append(piece)
            position += len(piece)
            check_size(position)
    except Exception as error:  # a template can raise any error
        refuse_rendering(name, error)
    finally:
        end_rendering(token)
    ends += [position] * (count - len(ends))
    return ChatTrace("".join(pieces), ends, values["messages"])


class _TracedMessages(Sequence[Mapping[str, Any]]):
    """List of messages that records the index of the last message that was read.

    An operation that depends on the number of messages counts as a read of all messages and of the list's end.

    Args:
        messages: The messages.
        start: Index of the first message of this part of the list.
        reads: List with the index of the last message that was read, which all parts share.
    """

    __hash__ = None  # type: ignore[assignment]  # as for a list

    def __init__(
        self, messages: Sequence[Mapping[str, Any]], start: int = 0, reads: list[int] | None = None
    ) -> None:
        self._messages = messages
        self._start = start
        self._reads = [-1] if reads is None else reads

    def get_last_read(self) -> int:
        """Returns the index of the last message that was read. It is larger after a read of the end."""
        return self._reads[0]

    def _read(self, index: int) -> None:
        self._reads[0] = max(self._reads[0], self._start + index)

    def _read_all(self) -> list[Mapping[str, Any]]:
        self._reads[0] = len(self._messages)
        return list(self._messages[self._start :])

    def __bool__(self) -> bool:
        self._read(0)
        return self._start < len(self._messages)

    def __len__(self) -> int:
        return len(self._read_all())

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        index = 0
        while self._start + index < len(self._messages):
            self._read(index)
            yield self._messages[self._start + index]
            index += 1
        self._read_all()

    @overload
    def __getitem__(self, index: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(index, slice):
            is_tail = index.stop is None and index.step is None and isinstance(index.start, int)
            if is_tail and index.start >= 0:
                return _TracedMessages(self._messages, self._start + index.start, self._reads)
            return self._read_all()[index]
        if index < 0:
            return self._read_all()[index]
        self._read(index)
        return self._messages[self._start + index]

    def __eq__(self, other: object) -> bool:
        return self._read_all() == other

    def __repr__(self) -> str:
        return repr(self._read_all())
