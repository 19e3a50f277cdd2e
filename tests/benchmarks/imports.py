"""What an import costs: CPU of fresh interpreters, beside pydantic, anyio and one value class."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from tests.benchmarks.report import Aim, Report, Table

__all__ = ["run"]

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
    """The table."""
    rounds = 1 if quick else 15
    programs = {name: text for name, text in PROGRAMS.items() if not quick or name in _QUICK}
    if not quick:
        programs |= {name: text for name, text in PEERS.items() if spent(text) is not None}
    taken: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(rounds + (not quick)):
        for name, text in programs.items():
            seconds = spent(text)
            if (turn or quick) and seconds is not None:
                taken[name].append(seconds)
    nothing, base = taken["nothing"], taken["base: pydantic, anyio, a dataclass"]
    rows: list[list[object]] = []
    most = 0.0
    for name, found in taken.items():
        over = median(mine / its for mine, its in zip(found, base, strict=True))
        pairs = zip(found, base, nothing, strict=True)
        net = median((mine - none) / (its - none) for mine, its, none in pairs)
        rows.append([name, f"{median(found) * 1e3:.0f} ms", over, net])
        most = max(most, over) if name.startswith("Msg, ") else most
    head = ["", "CPU", "× base", "× base, start-up taken off"]
    table = Table("Imports in fresh interpreters", head, rows)
    what = "Import with any of OpenAI, Anthropic, Gemini, worst"
    aim = Aim(what, "≤ 1.5 × pydantic, anyio and a dataclass", f"{most:.2f} ×", most <= 1.5)
    return Report([table], [_beside(taken)] if not quick else (), [aim])


def _beside(taken: dict[str, list[float]]) -> Table:
    """agentkit and its peers over the interpreter with asyncio."""
    names = ["Msg, OpenAI and Anthropic", "all nine providers", *(name for name in PEERS if name in taken)]
    rows: list[list[object]] = []
    for name in names:
        over = median(mine / its for mine, its in zip(taken[name], taken["asyncio"], strict=True))
        shown = name if name in PEERS else f"agentkit: {name}"
        rows.append([shown, f"{median(taken[name]) * 1e3:.0f} ms", over])
    return Table("Imports in fresh interpreters", ["", "CPU", "× `import asyncio`"], rows)


def spent(program: str) -> float | None:
    """CPU seconds of a fresh interpreter that runs a program; None if it fails. Bytecode is kept."""
    silent = subprocess.DEVNULL
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=silent, stderr=silent, env=kept)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime if process.returncode == 0 else None
