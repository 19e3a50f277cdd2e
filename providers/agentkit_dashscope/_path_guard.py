"""Protection of texts that the DashScope SDK would take for paths of local files."""

from __future__ import annotations

import re

__all__ = ["guarded"]


def guarded(text: str) -> str:
    """The text, behind a line break where the SDK might take it for a file.

    dashscope 2.0, `check_and_upload_local`: uploads what begins with `file://` (line breaks in it are passed
    over) or what `os.path.isfile` finds, unless it begins with `http`. Any other text may be the name of a file in
    the working folder, unless it is too long for one.
    """
    return text if text.startswith(("http", "\n")) or _is_no_path(text) else f"\n{text}"


def _is_no_path(text: str) -> bool:
    """Whether a text is longer than any path (PATH_MAX), or has a name in it that is longer than any (NAME_MAX).

    Windows leaves off the blanks and dots that a name ends with.
    """
    if len(text) <= _NAME_MAX or text.startswith("file:"):
        return False
    return len(text) > _PATH_MAX or any(len(name.rstrip(" .")) > _NAME_MAX for name in re.split(r"[/\\]", text))


_NAME_MAX, _PATH_MAX = 255, 4_096
