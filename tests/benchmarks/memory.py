"""Bytes of overhead a message, strings not counted, and the time to make one."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from agentkit_openai import OpenAIChatFormatter
from tests.benchmarks.histories import MIXES, PlainMsg, PlainText, as_msgs, copy_plain
from tests.benchmarks.measure import Case, interleave
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["measure_overhead", "run"]


class ModelText(BaseModel):
    """A text, as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    text: str
    type: Literal["text"] = "text"


class ModelCall(BaseModel):
    """A call, as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    input: dict[str, Any]
    type: Literal["tool_use"] = "tool_use"


class ModelResult(BaseModel):
    """A result, as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    output: str
    type: Literal["tool_result"] = "tool_result"


class ModelMsg(BaseModel):
    """A message, as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    name: str
    content: str | tuple[ModelText | ModelCall | ModelResult, ...]
    role: Literal["user", "assistant", "system"]
    id: str | None = None
    timestamp: str | None = None
    metadata: dict[str, Any] | None = None


def as_models(plain: Sequence[PlainMsg]) -> list[ModelMsg]:
    """The same history as pydantic models."""
    out: list[ModelMsg] = []
    for msg in plain:
        content = msg.content
        held = content if isinstance(content, str) else tuple(map(_as_model, content))
        out.append(ModelMsg(name=msg.name, content=held, role=msg.role))
    return out


def _as_model(block: Any) -> ModelText | ModelCall | ModelResult:
    if isinstance(block, PlainText):
        return ModelText(text=block.text)
    if hasattr(block, "input"):
        return ModelCall(id=block.id, name=block.name, input=block.input)
    return ModelResult(id=block.id, name=block.name, output=block.output)


def single_texts(n: int) -> list[PlainMsg]:
    """Messages of one text block each."""
    return [PlainMsg("Alice", [PlainText(f"text number {at}")], "user") for at in range(n)]


def measure_overhead(made: Sequence[object]) -> float:
    """Bytes an item holds, itself included: no strings, numbers, types, or what the interpreter shares."""
    seen: set[int] = set()
    total = 0
    left: list[object] = list(made)
    while left:
        found = left.pop()
        if id(found) in seen or isinstance(found, _SHARED) or found == ():
            continue
        seen.add(id(found))
        total += sys.getsizeof(found)
        left.extend(gc.get_referents(found))
    return total / len(made)


_SHARED = (str, bytes, int, float, type(None), type, types.ModuleType, types.FunctionType)


def warmed(plain: Sequence[PlainMsg]) -> list[Any]:
    """agentkit's messages after a formatter has seen them."""
    msgs = as_msgs(plain)
    OpenAIChatFormatter().lower(msgs)
    return msgs


def run(quick: bool = False) -> Report:
    """Every table."""
    n = 50 if quick else 1_000
    makers: dict[str, Callable[[Sequence[PlainMsg]], Sequence[object]]] = {
        "dataclass(slots)": copy_plain,
        "pydantic BaseModel": as_models,
        "agentkit Msg": as_msgs,
    }
    tables: list[Table] = []
    aims: list[Aim] = []
    mixes = {"one text block": single_texts, **MIXES}
    for name, make in mixes.items():
        plain = make(n)
        cases = {each: Case(plain.copy, maker) for each, maker in makers.items()}
        samples = interleave(cases, 3 if quick else 15)
        base = samples["dataclass(slots)"]
        rows: list[list[object]] = [
            [each, measure_overhead(makers[each](plain)), sampled.median / n * 1e6, sampled.ratio_to(base)]
            for each, sampled in samples.items()
        ]
        rows.append(["agentkit Msg, after one lower()", measure_overhead(warmed(plain)), "", ""])
        tables.append(
            Table(f"Memory and construction, {name}", ["", "bytes/msg", "us to make", "x dataclass"], rows)
        )
        if name == "mixed":
            held, taken = measure_overhead(warmed(plain)), samples["agentkit Msg"].median / n * 1e6
            aims.append(Aim("Overhead of a message, formatted once", "≤ 300 bytes", f"{held:.0f}", held <= 300))
            aims.append(Aim("Making a message, checks included", "≤ 1.5 µs", f"{taken:.1f} µs", taken <= 1.5))
    return Report(tables, (), aims)
