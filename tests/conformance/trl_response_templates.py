"""Reads the response templates of trl without importing trl, which needs torch."""

from __future__ import annotations

import ast
from typing import Any

from tests.conformance.training_packages import find_package

__all__ = ["read_trl_specs"]


def read_trl_specs() -> dict[str, dict[str, Any]]:
    """Returns the response templates of trl by name. Arguments are texts, as for new versions of transformers."""
    path = find_package("trl") / "chat_template_utils.py"
    names: dict[str, Any] = {"_SUPPORTS_PARSE_RESPONSE_TOOLS": True}
    for node in ast.parse(path.read_text("utf-8")).body:
        text = ast.unparse(node)
        is_dict = isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict)
        if is_dict or text.startswith(("_LFM2_2_5_", "_XML_INLINE", "for _ in range(3)")):
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
    return {name.removesuffix("_template"): value for name, value in names.items() if name.endswith("_template")}
