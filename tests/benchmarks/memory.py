"""Memory of a message without its strings, and the time to create a message."""

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
    """Text block as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    text: str
    type: Literal["text"] = "text"


class ModelCall(BaseModel):
    """Tool call as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    input: dict[str, Any]
    type: Literal["tool_use"] = "tool_use"


class ModelResult(BaseModel):
    """Tool result as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str
    output: str
    type: Literal["tool_result"] = "tool_result"


class ModelMsg(BaseModel):
    """Message as a pydantic model."""

    model_config = ConfigDict(frozen=True)
    name: str
    content: str | tuple[ModelText | ModelCall | ModelResult, ...]
    role: Literal["user", "assistant", "system"]
    id: str | None = None
    timestamp: str | None = None
    metadata: dict[str, Any] | None = None


def as_models(plain: Sequence[PlainMsg]) -> list[ModelMsg]:
    """Returns a history as pydantic models."""
    out: list[ModelMsg] = []
    for msg in plain:
        content = msg.content
        blocks = content if isinstance(content, str) else tuple(map(_as_model, content))
        out.append(ModelMsg(name=msg.name, content=blocks, role=msg.role))
    return out


def _as_model(block: Any) -> ModelText | ModelCall | ModelResult:
    if isinstance(block, PlainText):
        return ModelText(text=block.text)
    if hasattr(block, "input"):
        return ModelCall(id=block.id, name=block.name, input=block.input)
    return ModelResult(id=block.id, name=block.name, output=block.output)


def build_single_texts(n: int) -> list[PlainMsg]:
    """Returns messages with one text block each."""
    return [PlainMsg("Alice", [PlainText(f"text number {at}")], "user") for at in range(n)]


def measure_overhead(items: Sequence[object]) -> float:
    """Returns the mean size of `items` in bytes, with all objects that they refer to.

    Strings, numbers, types, modules and functions are not counted.
    """
    seen: set[int] = set()
    total = 0
    queue: list[object] = list(items)
    while queue:
        value = queue.pop()
        if id(value) in seen or isinstance(value, _SHARED) or value == ():
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        queue.extend(gc.get_referents(value))
    return total / len(items)


_SHARED = (str, bytes, int, float, type(None), type, types.ModuleType, types.FunctionType)


def build_formatted(plain: Sequence[PlainMsg]) -> list[Any]:
    """Returns messages of agentkit after a formatter has converted and cached them."""
    msgs = as_msgs(plain)
    OpenAIChatFormatter().lower(msgs)
    return msgs


def run(quick: bool = False) -> Report:
    """Measures dataclasses, pydantic models and messages of agentkit with each mix of messages."""
    n = 50 if quick else 1_000
    makers: dict[str, Callable[[Sequence[PlainMsg]], Sequence[object]]] = {
        "dataclass(slots)": copy_plain,
        "pydantic BaseModel": as_models,
        "agentkit Msg": as_msgs,
    }
    tables: list[Table] = []
    aims: list[Aim] = []
    mixes = {"one text block": build_single_texts, **MIXES}
    for name, make in mixes.items():
        plain = make(n)
        cases = {variant: Case(plain.copy, maker) for variant, maker in makers.items()}
        samples = interleave(cases, 3 if quick else 15)
        base = samples["dataclass(slots)"]
        rows: list[list[object]] = [
            [variant, measure_overhead(makers[variant](plain)), sampled.median / n * 1e6, sampled.ratio_to(base)]
            for variant, sampled in samples.items()
        ]
        rows.append(["agentkit Msg, after one lower()", measure_overhead(build_formatted(plain)), "", ""])
        tables.append(
            Table(
                f"Memory and construction, {name}", ["", "bytes per message", "µs to create", "× dataclass"], rows
            )
        )
        if name == "mixed":
            size, create_time = measure_overhead(build_formatted(plain)), samples["agentkit Msg"].median / n * 1e6
            aims.append(Aim("Overhead of a message, formatted once", "≤ 300 bytes", f"{size:.0f}", size <= 300))
            aims.append(
                Aim("Creating a message, checks included", "≤ 1.5 µs", f"{create_time:.1f} µs", create_time <= 1.5)
            )
    return Report(tables, (), aims)
