"""Table that maps names of models to the encodings that count their tokens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentkit.capabilities.model_names import normalize_model_name

__all__ = ["BASE", "ENCODINGS", "Encoding", "find_encoding"]


class Encoding(NamedTuple):
    """Encoding that is used to count tokens for a model.

    Attributes:
        name: Name of the encoding.
        note: Reason why the counts are estimates. Empty if the model itself uses this encoding.
    """

    name: str
    note: str = ""


BASE: Final = "o200k_base"
"""Encoding that is used for a model whose own encoding is unknown or unavailable."""

# Each pattern matches the start of a normalized model name. The first match decides.
_MODELS: Final = tuple(
    (re.compile(pattern), Encoding(name, note))
    for pattern, name, note in (
        # OpenAI models whose encoding is listed in tiktoken 0.14 (tiktoken.model).
        (r"gpt-(oss|4o|4\.1|4\.5|5)|chatgpt-4o|o[134](-|$)", BASE, ""),
        (r"gpt-(4|3\.5|35)", "cl100k_base", ""),
        # Other OpenAI models. tiktoken 0.14 does not list their encoding.
        (
            r"gpt-|codex|computer-use",
            BASE,
            "the model's encoding is not published; tokens counted with o200k_base",
        ),
        # Models whose vocabulary is in the wheel of splintr.
        (r"(qwen-?(1\.5|2|3(?!\.[5-9]))|qwq|qvq)", "qwen3", ""),
        (r"qwen", "qwen3", "the model's vocabulary is not available; tokens counted with that of Qwen 3"),
        (r"deepseek-(v3|r1)", "deepseek_v3", ""),
        (r"deepseek", "deepseek_v3", "the model's vocabulary is unknown; tokens counted with that of DeepSeek V3"),
        (r"kimi-k[23]", "kimi_k2", ""),
        (r"glm-4", "glm4", ""),
        (r"(meta-)?llama-?3", "llama3", ""),
        (r"phi-?4", "phi4", ""),
        # Models without an offline tokenizer (Claude docs, token-counting; Gemini docs, tokens).
        (
            r"claude",
            BASE,
            "the model's tokenizer is not published; tokens counted with o200k_base, which counts fewer tokens",
        ),
        (r"gem(ini|ma)", BASE, "the model's tokenizer is not available; tokens counted with o200k_base"),
    )
)

ENCODINGS: Final = frozenset(encoding.name for _, encoding in _MODELS)
"""Names of all supported encodings."""


def find_encoding(model: str) -> Encoding:
    """Returns the encoding for a model. For an unknown model, returns `BASE` with a note."""
    name = normalize_model_name(model)
    match = next((encoding for pattern, encoding in _MODELS if pattern.match(name)), None)
    return match or Encoding(BASE, f"the encoding of model {model!r} is unknown; tokens counted with o200k_base")
