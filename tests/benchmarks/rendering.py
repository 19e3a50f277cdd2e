"""Time of rendering chat templates, relative to transformers.

The templates are the built-in ones and those of the training tests. If the environment variable AGENTKIT_TRAINING
names the interpreter of an environment with trl, the templates of trl for large models are measured too.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

from agentkit import Msg, TextBlock, Tool, ToolResultBlock, ToolUseBlock, dump_messages
from agentkit.chat_templates import ChatTemplate
from agentkit.chat_templates.builtin_templates import BUILTIN_NAMES
from agentkit.chat_templates.template_messages import convert_messages, convert_tools
from agentkit.errors import AgentkitError
from agentkit.jinja_environments import chat_rendering
from tests.benchmarks.imports import measure_import
from tests.benchmarks.measure import Case, Samples, interleave
from tests.benchmarks.report import Aim, Report, Table
from tests.conformance.training_packages import VARIABLE, find_package
from tests.training.templates import MARKED, THINKING, UNMARKED

__all__ = ["run"]

_TOKENS: Final = {"bos_token": "<s>", "eos_token": "</s>"}
_QUESTION: Final = "Is the old bridge near the tower open in the evening, and how long is the way from the river? "
_ANSWER: Final = "The tower is near the river, and the old bridge is open until ten o'clock in the evening.\n"
_SCHEMA: Final = {
    "type": "object",
    "properties": {"place": {"type": "string", "description": "Name of the place."}, "day": {"type": "integer"}},
    "required": ["place"],
}
_TOOLS: Final = [Tool(f"get_{word}", f"Returns the {word} of a place.", _SCHEMA) for word in ("hours", "route")]
_LARGE: Final = (
    "deepseekv3",
    "gemma4_v5",
    "glm4moe",
    "gptoss",
    "llama3_1",
    "nemotron_3_ultra",
    "qwen3",
    "qwen3_8",
    "qwen3_training",
)
_MAX_RATIO: Final = 0.5
_MAX_LOOP: Final = 1.2
_FIRST_RENDERS: Final = "first render, 10 turns"
_NEW_PROCESSES: Final = "new process until the first text"
_PROGRAMS: Final = {
    "agentkit": """
import json
from pathlib import Path
from agentkit import load_messages
from agentkit.chat_templates import ChatTemplate
folder = Path({folder!r})
template = ChatTemplate(folder.joinpath("template.jinja").read_text("utf-8"), special_tokens={tokens!r})
messages = load_messages(json.loads(folder.joinpath("agentkit.json").read_text("utf-8")))
template.render(messages, add_generation_prompt=True)
""",
    "transformers": """
import json
from pathlib import Path
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
folder = Path({folder!r})
template = folder.joinpath("template.jinja").read_text("utf-8")
messages = json.loads(folder.joinpath("transformers.json").read_text("utf-8"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), chat_template=template)
tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, **{tokens!r})
""",
}


def build_msgs(turns: int, has_tools: bool) -> list[Msg]:
    """Returns a conversation that ends with a question. With tools, each answer follows a call and its result."""
    msgs: list[Msg] = []
    for index in range(turns // 2):
        msgs.append(Msg("user", f"Question {index}: {_QUESTION * 2}", "user"))
        if has_tools:
            id = f"call{index:05}"
            call = ToolUseBlock(id, "get_hours", {"place": "bridge", "day": index})
            result = ToolResultBlock(id, "get_hours", [TextBlock(_ANSWER)])
            msgs += [Msg("assistant", [call], "assistant"), Msg("get_hours", [result], "user")]
        msgs.append(Msg("assistant", f"Answer {index}: {_ANSWER * 4}", "assistant"))
    return [*msgs, Msg("user", f"Last question: {_QUESTION}", "user")]


def list_templates(quick: bool) -> dict[str, ChatTemplate]:
    """Returns the templates to measure by name."""
    if quick:
        return {"zephyr": ChatTemplate.builtin("zephyr"), "marked": MARKED}
    templates = {name: ChatTemplate.builtin(name) for name in BUILTIN_NAMES if name != "chatml"}
    templates |= {template.name: template for template in (MARKED, THINKING, UNMARKED)}
    if VARIABLE in os.environ:
        folder = find_package("trl") / "chat_templates"
        sources = {name: (folder / f"{name}.jinja").read_text("utf-8") for name in _LARGE}
        templates |= {
            name: ChatTemplate(source, name=name, special_tokens=_TOKENS) for name, source in sources.items()
        }
    return templates


@cache
def _create_tokenizer() -> Any:
    import transformers
    from tokenizers import Tokenizer, models

    create: Any = transformers.PreTrainedTokenizerFast
    return create(tokenizer_object=Tokenizer(models.BPE()))


def render_with_transformers(template: ChatTemplate, tools: Any, messages: Sequence[Mapping[str, Any]]) -> str:
    """Renders messages with `apply_chat_template`."""
    text: str = _create_tokenizer().apply_chat_template(
        messages,
        tools=tools,
        chat_template=template.jinja,
        add_generation_prompt=True,
        tokenize=False,
        **template.special_tokens,
    )
    return text


def render_with_agentkit(template: ChatTemplate, tools: Sequence[Tool], msgs: Sequence[Msg]) -> str:
    """Renders messages with `ChatTemplate.render`."""
    return template.render(msgs, tools=tools, add_generation_prompt=True, validate=False).text


def _render_first(template: ChatTemplate, tools: Sequence[Tool], msgs: Sequence[Msg]) -> None:
    chat_rendering._compile.cache_clear()  # pyright: ignore[reportPrivateUsage]
    created = ChatTemplate(template.jinja, special_tokens=template.special_tokens)
    render_with_agentkit(created, tools, msgs)


def _render_first_with_transformers(template: ChatTemplate, tools: Any, messages: Any) -> None:
    from transformers.utils import chat_template_utils

    compile: Any = chat_template_utils._compile_jinja_template  # pyright: ignore[reportPrivateUsage]
    compile.cache_clear()
    render_with_transformers(template, tools, messages)


def _is_equal(template: ChatTemplate, has_tools: bool) -> bool:
    """Returns True if both libraries render the conversation, to the same text. False if both refuse it."""
    from jinja2 import TemplateError

    tools, msgs = _TOOLS if has_tools else [], build_msgs(4, has_tools)
    messages, declared = convert_messages(msgs).messages, convert_tools(tools)
    try:
        actual = render_with_agentkit(template, tools, msgs)
    except AgentkitError:
        actual = None
    try:
        expected = render_with_transformers(template, declared, messages)
    except (TemplateError, TypeError):
        expected = None
    if actual is None or expected is None:
        return False
    if actual != expected:
        raise ValueError(f"{template.name}: the text is not the text of transformers")
    return True


def time_renders(
    template: ChatTemplate, turns: int, has_tools: bool, rounds: int, is_first: bool = False
) -> dict[str, Samples]:
    """Times renderings of new messages, with the compiled template or with the first use of the template."""
    tools = _TOOLS if has_tools else []
    messages, declared = convert_messages(build_msgs(turns, has_tools)).messages, convert_tools(tools)
    ours, theirs = render_with_agentkit, render_with_transformers
    if is_first:
        ours, theirs = _render_first, _render_first_with_transformers  # type: ignore[assignment]
    cases = {
        "agentkit": Case(partial(build_msgs, turns, has_tools), partial(ours, template, tools)),
        "transformers": Case(lambda: messages, partial(theirs, template, declared)),
    }
    return interleave(cases, rounds, batch=1 if turns > 100 or is_first else 5)


def time_loop(template: ChatTemplate, turns: int, has_tools: bool, rounds: int) -> dict[str, Samples]:
    """Times a loop that renders the conversation after each message of a user and each tool result."""
    tools = _TOOLS if has_tools else []
    msgs, declared = build_msgs(turns, has_tools), convert_tools(tools)
    ends = [index + 1 for index, msg in enumerate(msgs) if msg.role == "user"]
    steps = [convert_messages(msgs[:end]).messages for end in ends]

    def run_agentkit(msgs: list[Msg]) -> None:
        for end in ends:
            render_with_agentkit(template, tools, msgs[:end])

    def run_transformers(_: object) -> None:
        for messages in steps:
            render_with_transformers(template, declared, messages)

    cases = {
        "agentkit": Case(partial(build_msgs, turns, has_tools), run_agentkit),
        "transformers": Case(str, run_transformers),
    }
    return interleave(cases, rounds, warm=False)


@dataclass(frozen=True, slots=True)
class _Program:
    """Program that is timed in a new interpreter, imports included."""

    text: str

    def sample(self, batch: int, collector: bool) -> float:
        """Returns the CPU seconds of one run."""
        seconds = measure_import(self.text)
        if seconds is None:
            raise ValueError(f"the program failed:\n{self.text}")
        return seconds


def time_processes(template: ChatTemplate, turns: int) -> dict[str, Samples]:
    """Times two new processes that load a template and the messages of a conversation, and render once."""
    msgs = build_msgs(turns, False)
    with tempfile.TemporaryDirectory() as folder:
        contents = {
            "template.jinja": template.jinja or "",
            "agentkit.json": json.dumps(dump_messages(msgs)),
            "transformers.json": json.dumps(convert_messages(msgs).messages),
        }
        for file, content in contents.items():
            Path(folder, file).write_text(content, "utf-8")
        values = {"folder": folder, "tokens": dict(template.special_tokens)}
        programs = {name: _Program(text.format(**values)) for name, text in _PROGRAMS.items()}
        return interleave(programs, 1, warm=False)


def _measure(quick: bool, templates: Mapping[str, ChatTemplate]) -> Iterator[tuple[str, str, dict[str, Samples]]]:
    """Yields the name of a case, the name of a template, and the samples."""
    short, long, rounds = (4, 8, 1) if quick else (10, 200, 9)
    for name, template in templates.items():
        for has_tools in (False, True):
            if not _is_equal(template, has_tools):
                continue
            suffix = ", tools" if has_tools else ""
            yield f"10 turns{suffix}", name, time_renders(template, short, has_tools, rounds)
            yield f"200 turns{suffix}", name, time_renders(template, long, has_tools, rounds)
            yield (
                f"{_FIRST_RENDERS}{suffix}",
                name,
                time_renders(template, short, has_tools, rounds, is_first=True),
            )
            yield f"loop of 200 turns{suffix}", name, time_loop(template, long, has_tools, 1)
        yield _NEW_PROCESSES, name, time_processes(template, short)


def run(quick: bool = False) -> Report:
    """Measures renderings, first renderings and loops."""
    samples: dict[str, dict[str, dict[str, Samples]]] = {}
    for case, name, measured in _measure(quick, list_templates(quick)):
        samples.setdefault(case, {})[name] = measured
    rows: list[list[object]] = []
    details: list[list[object]] = []
    medians: dict[str, float] = {}
    for case, by_name in samples.items():
        ratios = {name: item["agentkit"].ratio_to(item["transformers"]) for name, item in by_name.items()}
        sums = [sum(item[side].median for item in by_name.values()) for side in ("agentkit", "transformers")]
        worst = max(ratios, key=lambda name: ratios[name])
        medians[case] = median(ratios.values())
        rows.append([case, len(ratios), medians[case], sums[0] / sums[1], ratios[worst], worst])
        for name, ratio in ratios.items():
            details.append([f"{name}, {case}", by_name[name]["agentkit"].median * 1e3, ratio])
    tables = [
        Table(
            "Rendering, × transformers", ["", "templates", "median", "all templates", "worst", "template"], rows
        ),
        Table("Rendering by template", ["", "ms", "× transformers"], details),
    ]
    aims = [_create_aim(case, ratio) for case, ratio in medians.items()]
    return Report(tables, tables[:1], aims)


def _create_aim(case: str, ratio: float) -> Aim:
    limit = _MAX_LOOP if case.startswith("loop") else _MAX_RATIO
    return Aim(f"Chat template, {case}: × transformers, median", f"≤ {limit}", f"{ratio:.2f}", ratio <= limit)
