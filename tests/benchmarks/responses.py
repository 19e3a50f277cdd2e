"""Time per delta of the parsers of local models' replies: thinking, text, code and a tool call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentkit.chat_templates import ResponseTemplate
from tests.benchmarks.measure import Case, fit_exponent, format_seconds, get_step_exponents, interleave
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["run"]

_PIECE_SIZE: Final = 4
_MAX_MICROSECONDS: Final = 6
_PROSE: Final = "The tower is near the river, and the old bridge is open. "
_CODE: Final = "if (count < limit && list[index] > 0) { total += 1; }\n"
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
    "llama_3": ("{0}{1}", '{{"name": "f", "parameters": {{"text": "{0}"}}}}<|eot_id|>'),
}
"""Replies with thinking and text, and the tool call after them."""


def _build_reply(name: str, count: int, words: str) -> list[str]:
    """Returns a reply of about `count` pieces: a third each is thinking, text and a tool call."""
    reply, call = _FORMS[name]
    part = words * (count * _PIECE_SIZE // 3 // len(words))
    text = reply.format(part, part) + call.format(part.replace("\n", " "))
    return [text[start : start + _PIECE_SIZE] for start in range(0, len(text), _PIECE_SIZE)]


def _create_case(template: ResponseTemplate, pieces: Sequence[str]) -> Case:
    def parse(_: object) -> None:
        parser = template.stream_parser()
        for piece in pieces:
            parser.feed(piece)
        parser.finish()

    return Case(lambda: None, parse)


def run(quick: bool = False) -> Report:
    """Measures parsers of replies over several numbers of deltas."""
    sizes, rounds = ([50, 100], 1) if quick else ([1_000, 10_000, 100_000], 5)
    rows: list[list[object]] = []
    exponents: list[float] = []
    times: dict[str, list[float]] = {"prose": [], "code": []}
    for name in _FORMS:
        template = ResponseTemplate.builtin(name)
        for label, words in (("prose", _PROSE), ("code", _CODE)):
            replies = [_build_reply(name, size, words) for size in sizes]
            cases = {str(len(pieces)): _create_case(template, pieces) for pieces in replies}
            samples = interleave(cases, rounds, collector=True, warm=rounds > 1)
            counts = [*map(int, samples)]
            seconds = [sampled.median for sampled in samples.values()]
            each = [duration / count for count, duration in zip(counts, seconds, strict=True)]
            exponents.append(fit_exponent(counts, seconds))
            times[label].append(each[-1] * 1e6)
            shown = map(format_seconds, each)
            rows.append([f"{name}, {label}", *shown, exponents[-1], get_step_exponents(counts, seconds)[-1]])
    head = ["", *(f"n={size:,}" for size in sizes), "exponent", "exponent of last step"]
    worst, slowest = max(exponents), max(times["prose"])
    aims = [
        Aim(
            "Replies of local models: time per delta of prose, worst response template",
            f"≤ {_MAX_MICROSECONDS} µs",
            f"{slowest:.1f} µs",
            slowest <= _MAX_MICROSECONDS,
        ),
        Aim(
            f"Replies of local models: growth exponent up to {sizes[-1]:,} deltas, worst response template",
            "≤ 1.05",
            f"{worst:.2f}",
            worst <= 1.05,
        ),
    ]
    return Report([Table("Time per delta of replies of local models", head, rows)], (), aims)
