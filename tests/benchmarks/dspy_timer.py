"""Process that times DSPy. The interpreter of the environment with DSPy runs this module.

Each line of the input is a JSON object with the name of a case and the arguments of `Case.sample`. Each line of
the output is the number of CPU seconds.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from tests.benchmarks.measure import Case
from tests.benchmarks.prompt_tasks import (
    EXAMPLE_COUNTS,
    INPUTS,
    REPLIES,
    SIGNATURE,
    TYPES,
    build_example,
    name_format,
    name_parse,
)


def main() -> None:
    """Answers the lines of the standard input."""
    cases = create_cases(import_module("dspy"))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        question = json.loads(line)
        print(cases[question["case"]].sample(question["batch"], question["collector"]), flush=True)


def create_cases(dspy: Any) -> dict[str, Case]:
    """Returns the cases of DSPy, by the names of their rows."""
    cases: dict[str, Case] = {}
    chat, request = dspy.ChatAdapter(), dspy.Signature(SIGNATURE)
    for count in EXAMPLE_COUNTS:
        demos = _build_demos(count)
        cases[name_format(count)] = _create_case(partial(chat.format, request, demos, INPUTS))
        cases[name_format(count, is_new=True)] = Case(
            partial(_build_demos, count), partial(chat.format, request, inputs=INPUTS)
        )
    for name, reply in REPLIES.items():
        signature = dspy.Signature(reply.signature, custom_types=TYPES)
        for adapter, parser, text in (("chat", chat, reply.chat), ("JSON", dspy.JSONAdapter(), reply.json)):
            cases[name_parse(adapter, name)] = _create_case(partial(parser.parse, signature, text))
    return cases


def _build_demos(count: int) -> list[dict[str, Any]]:
    return [inputs | outputs for inputs, outputs in map(build_example, range(count))]


def _create_case(run: Callable[[], object]) -> Case:
    return Case(lambda: None, lambda _: run())


if __name__ == "__main__":
    main()
