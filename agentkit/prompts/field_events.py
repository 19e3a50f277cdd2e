"""Events of the fields of a streamed reply. `stream` yields them among the events of the model.

    FieldStart       FieldDelta*       FieldEnd        an output

In a reply without an error, each output has one start and one end. A field whose value is invalid has no end.
Usually, a field ends before the next field starts. If the reply is damaged JSON, some deltas and ends come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.reprs import bounded_repr

__all__ = ["FieldDelta", "FieldEnd", "FieldEvent", "FieldStart"]


@dataclass(slots=True, repr=False)
class FieldStart:
    """Start of an output."""

    name: str
    type: Literal["field-start"] = "field-start"

    __repr__ = bounded_repr


@dataclass(slots=True, repr=False)
class FieldDelta:
    """Piece of the text of an output. All pieces of a field are the text that its value is parsed from."""

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
