"""Events of the outputs in a streamed reply. `stream` yields these events between the events of the model.

    FieldStart       FieldDelta*       FieldEnd        an output

In a reply without an error, each output has one FieldStart and one FieldEnd. An output whose value is invalid has
no FieldEnd. Usually, an output ends before the next output starts. If the reply is damaged JSON, some FieldDelta
and FieldEnd events come only at the end of the reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.reprs import bounded_repr

__all__ = ["FieldDelta", "FieldEnd", "FieldEvent", "FieldStart"]


@dataclass(slots=True, repr=False)
class FieldStart:
    """Start of an output in a streamed reply."""

    name: str
    type: Literal["field-start"] = "field-start"

    __repr__ = bounded_repr


@dataclass(slots=True, repr=False)
class FieldDelta:
    """Piece of the text of an output. All pieces together are the text from which the value is parsed."""

    name: str
    text: str
    type: Literal["field-delta"] = "field-delta"

    __repr__ = bounded_repr


@dataclass(slots=True, repr=False)
class FieldEnd:
    """End of an output, with its validated value."""

    name: str
    value: Any
    type: Literal["field-end"] = "field-end"

    __repr__ = bounded_repr


FieldEvent: TypeAlias = FieldStart | FieldDelta | FieldEnd
