"""Names of models without the prefixes and suffixes that clouds, fine-tuning and releases add to a name."""

from __future__ import annotations

import re

__all__ = ["normalize_model_name"]

# Vendor prefixes, such as `us.anthropic.` and `qwen.` (Bedrock) or `system.ai.` (Databricks).
# The pattern requires a word and `-` after the prefix, so that a file name such as `model.gguf` stays complete.
_VENDOR = re.compile(r"(?:[a-z-]+\.)+(?=[a-z]+[0-9.]*-)")
_PREFIXES = ("ft:", "databricks-")
# Suffixes of model names, such as `@20251101` (Vertex), `-v1:0` (Bedrock) and `[1m]` (Claude Code).
_SUFFIX = re.compile(r"(?<=.)@.*|(?<=\d)-v\d+:\d+(?::\w+)?$|\[\w+\]$")
# Dates in model names: 2026-10-01, 10-2026, 20261001, 261001, and 1001 (month and day, or year and month).
# The pattern also matches a month and a day after `preview-` or `exp-`, as in Gemini's `preview-05-06`.
_DATE = re.compile(
    r"[-_](?:20\d\d-\d\d-\d\d|\d\d-20\d\d|\d{8}|\d{6}|\d{4}|(?<=preview-)\d\d-\d\d|(?<=exp-)\d\d-\d\d)(?![0-9a-z])"
)

_MAX_LENGTH = 200
"""Maximum length, in characters, of a name from which prefixes, dates and suffixes are removed.

A longer name keeps these parts, because the patterns would take too long to search the name.
"""


def normalize_model_name(model: str) -> str:
    """Returns the model name in lower case, without its path, vendor prefix, date and cloud suffix.

    Numbers with one or two digits are parts of a version. Numbers with four, six or eight digits are dates.

    >>> normalize_model_name("us.anthropic.claude-opus-4-5-20251101-v1:0")
    'claude-opus-4-5'
    >>> normalize_model_name("publishers/anthropic/models/claude-opus-4-5@20251101")
    'claude-opus-4-5'
    >>> normalize_model_name("openai/gpt-6-2026-10-01")
    'gpt-6'
    """
    name = model.strip().rpartition("/")[2].lower()
    if len(name) > _MAX_LENGTH:
        return name
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return _DATE.sub("", _SUFFIX.sub("", _VENDOR.sub("", name, count=1)))
