"""Normalized model names, without the prefixes and suffixes that clouds, gateways and snapshots add."""

from __future__ import annotations

import re

__all__ = ["normalize_model_name"]

# Bedrock: `us.anthropic.`, `qwen.`; Databricks: `system.ai.`. File names do not match: WORD and `-` must follow.
_VENDOR = re.compile(r"(?:[a-z-]+\.)+(?=[a-z]+[0-9.]*-)")
_PREFIXES = ("ft:", "databricks-")
# Suffixes. Vertex: `@20251101`; Bedrock: `-v1:0`; Claude Code: `[1m]`.
_SUFFIX = re.compile(r"(?<=.)@.*|(?<=\d)-v\d+:\d+(?::\w+)?$|\[\w+\]$")
# Dates: 2026-10-01, 10-2026, 20261001, 261001, 1001 (month and day, or year and month), Gemini's preview-05-06.
_DATE = re.compile(
    r"[-_](?:20\d\d-\d\d-\d\d|\d\d-20\d\d|\d{8}|\d{6}|\d{4}|(?<=preview-)\d\d-\d\d|(?<=exp-)\d\d-\d\d)(?![0-9a-z])"
)

_MAX_LENGTH = 200
"""Length of a model name in characters above which the name is not normalized: searching it would take long."""


def normalize_model_name(model: str) -> str:
    """Returns the model name in lower case, without path, vendor, date and version suffix of a cloud.

    Numbers in versions have one or two digits. Dates have more digits, so a date is never taken for a version.

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
