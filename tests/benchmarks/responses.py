"""Time per delta of the parsers of local models' replies: thinking, text, code, markup and tool calls.

`calls` are many calls with one character each. `regions` are thinking and text in turn, with one character each.

Deltas have four characters. `json.dumps` of the same deltas is the base of the ratios, which depend less on the
machine than the times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Final

from agentkit.chat_templates import ResponseTemplate
from tests.benchmarks.measure import Case, fit_exponent, format_seconds, get_step_exponents, interleave
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["run"]

_PIECE_SIZE: Final = 4
_MAX_MICROSECONDS: Final = 6
_PROSE: Final = "The tower is near the river, and the old bridge is open. "
_CODE: Final = "if (count < limit && list[index] > 0) { total += 1; }\n"
_MARKUP: Final = "<b>a</b>[1]{x} "
_FORMS: Final = {
    "qwen3": ("<think>{0}</think>{1}", '<tool_call>{{"name": "f", "arguments": {{"text": "{0}"}}}}</tool_call>'),
    "kimi": (
        "<think>{0}</think>{1}",
        "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>" + '{{"text": "{0}"}}<|tool_call_end|>',
    ),
    "gpt_oss": (
        "<|channel|>analysis<|message|>{0}<|end|><|start|>assistant<|channel|>final<|message|>{1}<|end|>",
        "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>" + '{{"text": "{0}"}}<|call|>',
    ),
    "mistral_v11": ("[THINK]{0}[/THINK]{1}", '[TOOL_CALLS]f[ARGS]{{"text": "{0}"}}'),
    "llama_3": ("{0}{1}", '{{"name": "f", "parameters": {{"text": "{0}"}}}}<|eot_id|>'),
}
"""Replies with thinking and text, and the tool call after them."""


def _split(text: str) -> list[str]:
    return [text[start : start + _PIECE_SIZE] for start in range(0, len(text), _PIECE_SIZE)]


def _build_parts(name: str, count: int, has_calls: bool) -> list[str]:
    """Returns a reply of about `count` pieces with short parts: tool calls, or thinking and text in turn."""
    reply, call = _FORMS[name]
    part = call.format("a").replace("<|eot_id|>", ";") if has_calls else reply.format("a", "b")
    return _split(part * (count * _PIECE_SIZE // len(part)))


def _build_reply(name: str, count: int, words: str) -> list[str]:
    """Returns a reply of about `count` pieces: a third each is thinking, text and a tool call."""
    reply, call = _FORMS[name]
    part = words * (count * _PIECE_SIZE // 3 // len(words))
    text = reply.format(part, part) + call.format(part.replace("\n", " "))
    return _split(text)


def _create_case(template: ResponseTemplate, pieces: Sequence[str]) -> Case:
    def parse(_: object) -> None:
        parser = template.stream_parser()
        for piece in pieces:
            parser.feed(piece)
        parser.finish()

    return Case(lambda: None, parse)


def _dump_all(pieces: Sequence[str]) -> Callable[[object], None]:
    def dump(_: object) -> None:
        for piece in pieces:
            json.dumps(piece)

    return dump


def run(quick: bool = False) -> Report:
    """Measures parsers of replies over several numbers of deltas."""
    sizes, rounds = ([50, 100], 1) if quick else ([1_000, 10_000, 100_000], 5)
    rows: list[list[object]] = []
    exponents: list[float] = []
    words_by_label = {"prose": _PROSE, "code": _CODE, "markup": _MARKUP, "calls": "", "regions": ""}
    times: dict[str, list[float]] = {label: [] for label in words_by_label}
    ratios: dict[str, list[float]] = {label: [] for label in times}
    for name in _FORMS:
        template = ResponseTemplate.builtin(name)
        for label, words in words_by_label.items():
            has_calls = label == "calls"
            replies = [
                _build_reply(name, size, words) if words else _build_parts(name, size, has_calls) for size in sizes
            ]
            cases = {str(len(pieces)): _create_case(template, pieces) for pieces in replies}
            base = Case(lambda: None, _dump_all(replies[-1]))
            samples = interleave({**cases, "base": base}, rounds, collector=True, warm=rounds > 1)
            ratios[label].append(samples[str(len(replies[-1]))].ratio_to(samples.pop("base")))
            counts = [*map(int, samples)]
            seconds = [sampled.median for sampled in samples.values()]
            each = [duration / count for count, duration in zip(counts, seconds, strict=True)]
            exponents.append(fit_exponent(counts, seconds))
            times[label].append(min(samples[str(counts[-1])].seconds) / counts[-1] * 1e6)
            shown = map(format_seconds, each)
            last = get_step_exponents(counts, seconds)[-1]
            rows.append([f"{name}, {label}", *shown, f"{ratios[label][-1]:.1f} x", exponents[-1], last])
    head = ["", *(f"n={size:,}" for size in sizes), "json.dumps", "exponent", "exponent of last step"]
    worst = max(exponents)
    aims = [
        *(
            Aim(
                f"Replies of local models: time per delta of {label}, worst response template",
                f"≤ {_MAX_MICROSECONDS} µs",
                f"{max(found):.1f} µs ({max(ratios[label]):.1f} x json.dumps)",
                max(found) <= _MAX_MICROSECONDS,
            )
            for label, found in times.items()
        ),
        Aim(
            f"Replies of local models: growth exponent up to {sizes[-1]:,} deltas, worst response template",
            "≤ 1.05",
            f"{worst:.2f}",
            worst <= 1.05,
        ),
    ]
    tables = [Table("Time per delta of replies of local models", head, rows)]
    return Report(tables, tables, aims)
