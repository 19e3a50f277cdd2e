"""`Prediction`: the result of `ask` or `stream`, with the value, the reply and all attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agentkit.errors import ParseError
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["Attempt", "Outputs", "Prediction"]

T = TypeVar("T")


class Outputs(Mapping[str, Any]):
    """Immutable mapping with the outputs of a request. The object also has each output as an attribute.

    If an output has the name of a method, such as `items`, the attribute is the value of the output.
    """

    __slots__ = ("__dict__",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"outputs are immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"outputs are immutable: {name!r} cannot be deleted")

    def __getattr__(self, name: str) -> Any:
        names = ", ".join(vars(self))
        advice = f"Use one of: {names}." if names else "There are no outputs."
        raise AttributeError(f"no output has the name {name!r}. {advice}")

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Outputs):
            return vars(self) == vars(other)
        return dict(vars(self)) == other if isinstance(other, Mapping) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # some outputs cannot be hashed, such as lists

    def __repr__(self) -> str:
        return f"Outputs({', '.join(f'{name}={shorten_repr(value, 200)}' for name, value in vars(self).items())})"


@dataclass(frozen=True, slots=True, repr=False)
class Attempt:
    """Reply that `ask` or `stream` tried to parse, with its request.

    Attributes:
        messages: Messages of the request that led to the reply.
        reply: Reply of the model.
        error: Error that says why the reply has no value. None if the reply has a value.
    """

    messages: tuple[Msg, ...]
    reply: Msg
    error: ParseError | None = None

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True, repr=False)
class Prediction(Generic[T]):
    """Result of `ask` or `stream`.

    Attributes:
        value: For a `Signature[T]`, a value of the type T. For any other signature, an `Outputs` object. If the
            reply has tool calls, outputs that its text lacks are None.
        message: The reply with the value.
        messages: The messages of the request, and the reply. The current request is no longer pinned, so that a
            budget may drop it when these messages are the history of a later request.
        attempts: All replies that `ask` or `stream` tried to parse, in order. The last reply has the value.
        tool_calls: Tool calls of the reply.
        error: Error that a parser with `.or_error()` returned as a value. None if there is no such error.
    """

    value: T
    message: Msg
    messages: tuple[Msg, ...]
    attempts: tuple[Attempt, ...]
    tool_calls: tuple[ToolUseBlock, ...] = ()
    error: ParseError | None = None

    __repr__ = bounded_repr
