"""CPU time of imports in new interpreters, relative to importing pydantic and anyio and creating one dataclass."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from tests.benchmarks.report import Aim, Report, Table

__all__ = ["measure_import", "run"]

_BASE = """
import pydantic, anyio
from pydantic.dataclasses import dataclass
@dataclass(frozen=True, slots=True)
class One:
    name: str
"""

PROGRAMS: dict[str, str] = {
    "nothing": "pass",
    "asyncio": "import asyncio",
    "base: pydantic, anyio, a dataclass": _BASE,
    "agentkit": "import agentkit",
    "Msg": "from agentkit import Msg",
    "Msg, TextBlock, tool blocks": "from agentkit import Msg, TextBlock, ToolUseBlock, ToolResultBlock",
    "Msg, OpenAIChatFormatter": "from agentkit import Msg; from agentkit_openai import OpenAIChatFormatter",
    "Msg, AnthropicChatFormatter": (
        "from agentkit import Msg; from agentkit_anthropic import AnthropicChatFormatter"
    ),
    "Msg, OpenAI and Anthropic": (
        "from agentkit import Msg; from agentkit_openai import OpenAIChatFormatter; "
        "from agentkit_anthropic import AnthropicChatFormatter"
    ),
    "Msg, GeminiChatFormatter": "from agentkit import Msg; from agentkit_gemini import GeminiChatFormatter",
    "all nine providers": "from agentkit import *; [load_provider(n) for n in available_providers()]",
}
PEERS: dict[str, str] = {
    "LangChain OpenAI": "from langchain_openai import ChatOpenAI",
    "LangChain Anthropic": "from langchain_anthropic import ChatAnthropic",
    "litellm": "import litellm",
    "pydantic-ai": "from pydantic_ai.models.openai import OpenAIChatModel",
    "AgentScope 1": "from agentscope.formatter import OpenAIChatFormatter",
}

_QUICK = {"nothing", "base: pydantic, anyio, a dataclass", "Msg, OpenAIChatFormatter"}


def run(quick: bool = False) -> Report:
    """Measures the imports of agentkit and of other libraries."""
    rounds = 1 if quick else 15
    programs = {name: text for name, text in PROGRAMS.items() if not quick or name in _QUICK}
    if not quick:
        programs |= {name: text for name, text in PEERS.items() if measure_import(text) is not None}
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + (not quick)):
        for name, text in programs.items():
            seconds = measure_import(text)
            if (number or quick) and seconds is not None:
                times[name].append(seconds)
    nothing, base = times["nothing"], times["base: pydantic, anyio, a dataclass"]
    rows: list[list[object]] = []
    worst = 0.0
    for name, samples in times.items():
        ratio = median(sample / base_sample for sample, base_sample in zip(samples, base, strict=True))
        pairs = zip(samples, base, nothing, strict=True)
        net = median(
            (sample - nothing_sample) / (base_sample - nothing_sample)
            for sample, base_sample, nothing_sample in pairs
        )
        rows.append([name, f"{median(samples) * 1e3:.0f} ms", ratio, net])
        worst = max(worst, ratio) if name.startswith("Msg, ") else worst
    head = ["", "CPU", "× base", "× base, without interpreter start"]
    table = Table("Imports in new interpreters", head, rows)
    measurement = "Import of Msg and formatters, slowest program"
    aim = Aim(measurement, "≤ 1.5 × pydantic, anyio and a dataclass", f"{worst:.2f} ×", worst <= 1.5)
    return Report([table], [_compare_peers(times)] if not quick else (), [aim])


def _compare_peers(times: dict[str, list[float]]) -> Table:
    """Returns the imports of agentkit and other libraries, relative to `import asyncio`."""
    names = ["Msg, OpenAI and Anthropic", "all nine providers", *(name for name in PEERS if name in times)]
    rows: list[list[object]] = []
    for name in names:
        ratio = median(
            sample / base_sample for sample, base_sample in zip(times[name], times["asyncio"], strict=True)
        )
        label = name if name in PEERS else f"agentkit: {name}"
        rows.append([label, f"{median(times[name]) * 1e3:.0f} ms", ratio])
    return Table("Imports in new interpreters", ["", "CPU", "× `import asyncio`"], rows)


def measure_import(program: str, python: str = sys.executable) -> float | None:
    """Returns the CPU seconds of a new interpreter that runs a program, or None if the program fails.

    The interpreter may write bytecode caches, so that later runs do not compile modules again.
    """
    null = subprocess.DEVNULL
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen([python, "-c", program], stdout=null, stderr=null, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime if process.returncode == 0 else None
