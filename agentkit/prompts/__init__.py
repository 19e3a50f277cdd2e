"""Typed prompts: a `Signature` declares the inputs and outputs of a task as types.

Input: the values of a request, examples and a history. Output: messages for any model, and validated values from
its reply, or an error that names the field. Read `signature` first.
"""

from __future__ import annotations

__all__: list[str] = []
