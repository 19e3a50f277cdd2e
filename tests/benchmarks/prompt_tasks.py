"""Signatures, values and replies of the benchmark `prompts`, for agentkit and for DSPy.

The processes of both libraries import this module. It needs only pydantic.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

__all__ = [
    "EXAMPLE_COUNTS",
    "INPUTS",
    "REPLIES",
    "SIGNATURE",
    "TYPES",
    "ReplyTask",
    "Source",
    "build_example",
    "name_format",
    "name_parse",
]


class Source(BaseModel):
    """Place of a fact."""

    title: str
    page: int = 0


TYPES: Final[dict[str, Any]] = {"Source": Source}
"""Types in the signature texts that are not in the standard set, by name."""

# -- requests -------------------------------------------------------------------------------------------------

SIGNATURE: Final = "question, passages: list[str] -> verdict: Literal['yes', 'no'], score: int, reason"
EXAMPLE_COUNTS: Final = (0, 10, 100)
INPUTS: Final[dict[str, Any]] = {
    "question": "Is Paris the capital of France?",
    "passages": ["Paris is the capital of France.", "Paris lies on the Seine."],
}
_REASON: Final = "The first passage names Paris as the capital, and no other passage disagrees."


def build_example(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the inputs and the outputs of an example."""
    outputs = {"verdict": "yes", "score": number % 10, "reason": _REASON}
    return {**INPUTS, "question": f"Is city {number} the capital of France?"}, outputs


def name_format(count: int, *, is_new: bool = False) -> str:
    """Returns the name of the row for a request with `count` examples.

    `is_new` means that each call has new examples. Otherwise, all calls have the same ones.
    """
    return f"format, {count} {'new ' if is_new else ''}examples"


# -- replies --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReplyTask:
    """Reply to parse.

    Attributes:
        signature: Signature text.
        chat: Reply for `ChatAdapter`.
        json: Reply for `JSONAdapter`.
    """

    signature: str
    chat: str
    json: str


def _build_reply(outputs: dict[str, tuple[str, Any]]) -> ReplyTask:
    """Returns the reply with these outputs. `outputs` has the type and the JSON value of each output."""
    signature = ", ".join(f"{name}: {annotation}" for name, (annotation, _) in outputs.items())
    values = {name: value for name, (_, value) in outputs.items()}
    sections = [f"[[ ## {name} ## ]]\n{_write_value(value)}\n" for name, value in values.items()]
    chat = "\n".join([*sections, "[[ ## completed ## ]]\n"])
    return ReplyTask(f"question -> {signature}", chat, json.dumps(values, indent=2))


def _write_value(value: object) -> str:
    return json.dumps(value) if isinstance(value, list | dict) else str(value)


_VALUES: Final[dict[str, Any]] = {
    "str": _REASON,
    "int": 7,
    "bool": True,
    "Literal['yes', 'no']": "yes",
    "list[str]": ["Paris", "Lyon"],
    "Source": {"title": "Atlas", "page": 3},
    "Optional[str]": "Paris",
}

REPLIES: Final = {
    "seven types": _build_reply({f"output_{number}": item for number, item in enumerate(_VALUES.items())}),
    "verdict, score, reason": _build_reply(
        {"verdict": ("Literal['yes', 'no']", "yes"), "score": ("int", 7), "reason": ("str", _REASON)}
    ),
    "two texts": _build_reply({"reasoning": ("str", f"{_REASON}\n" * 3), "answer": ("str", "Paris")}),
    **{annotation: _build_reply({"answer": (annotation, value)}) for annotation, value in _VALUES.items()},
}
"""Replies by name: some with several outputs, and one for each type."""


def name_parse(adapter: str, reply: str) -> str:
    """Returns the name of the row for a reply. `adapter` is `chat` or `JSON`."""
    return f"parse {adapter}, {reply}"
