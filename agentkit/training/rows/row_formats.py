"""`FORMATS`: the formats of training data, by name."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from agentkit.argument_checks import check_choice
from agentkit.training.rows.atif_rows import ATIF
from agentkit.training.rows.chat_rows import OPENAI
from agentkit.training.rows.pair_rows import ALPACA, INPUT_OUTPUT, PROMPT_COMPLETION, STANFORD_ALPACA
from agentkit.training.rows.preference_rows import PREFERENCE
from agentkit.training.rows.recording_rows import RECORDING
from agentkit.training.rows.row_format import RowFormat
from agentkit.training.rows.sharegpt_rows import SHAREGPT
from agentkit.training.rows.trl_rows import TRL

__all__ = ["FORMATS", "FormatName", "find_format"]

FormatName: TypeAlias = Literal[
    "openai",
    "trl",
    "dspy",
    "sharegpt",
    "alpaca",
    "stanford_alpaca",
    "input_output",
    "prompt_completion",
    "preference",
    "atif",
    "recording",
]
"""Name of a format of training data."""

FORMATS: Final[dict[FormatName, RowFormat]] = {
    "openai": OPENAI,
    "trl": TRL,
    "dspy": OPENAI,
    "sharegpt": SHAREGPT,
    "alpaca": ALPACA,
    "stanford_alpaca": STANFORD_ALPACA,
    "input_output": INPUT_OUTPUT,
    "prompt_completion": PROMPT_COMPLETION,
    "preference": PREFERENCE,
    "atif": ATIF,
    "recording": RECORDING,
}
"""Formats by name. The format `dspy` is `openai`, because `format_finetune_data` of DSPy returns such rows."""


def find_format(name: FormatName) -> RowFormat:
    """Returns the format with this name.

    Raises:
        OptionError: There is no such format.
    """
    check_choice("format", name, tuple(FORMATS))
    return FORMATS[name]
