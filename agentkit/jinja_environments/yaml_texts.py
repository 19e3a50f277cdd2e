"""`dump_yaml`: writes JSON values as YAML text."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from agentkit.errors import MissingExtraError, OptionError

__all__ = ["dump_yaml", "import_yaml"]


def dump_yaml(value: object) -> str:
    """Returns a JSON value as YAML text. The text ends with a line break.

    Dicts and lists are written as blocks. A string with line breaks is written as a `|` block if YAML can
    represent the string in this way. Other strings are broken at the first space after 100 characters. The order
    of keys and all characters are kept.

    Raises:
        OptionError: The value is not a JSON value, or is nested too deeply.
        MissingExtraError: The package pyyaml is not installed.

    Example:
        >>> print(dump_yaml({"port": "Brest", "tides": [1.5, 7]}), end="")
        port: Brest
        tides:
          - 1.5
          - 7
    """
    yaml = import_yaml()
    try:
        text: str = yaml.dump(
            value,
            Dumper=_get_dumper_class(),
            default_flow_style=False,
            allow_unicode=True,
            sort_keys=False,
            width=100,
        )
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = "the value is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise OptionError("value", f"cannot be written as YAML ({reason})", "Pass a JSON value.") from None
    return text[: -len("...\n")] if text.endswith("\n...\n") else text  # PyYAML ends some documents with `...`


def import_yaml() -> Any:
    """Returns the module `yaml`.

    Raises:
        MissingExtraError: The package pyyaml is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("pyyaml", "prompts", "Writing YAML") from None
    return yaml


_FRAGILE: Final = re.compile("[\r\x85\u2028\u2029]")
"""Pattern of the line breaks that YAML changes in a text without quotation marks."""


@cache
def _get_dumper_class() -> Any:
    yaml = import_yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]  # the class is known only at run time
        """Dumper that indents the items of a list, and writes repeated values in full, without references."""

        def ignore_aliases(self, data: object) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def represent_text(dumper: Any, text: str) -> Any:
        style = '"' if _FRAGILE.search(text) else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)

    Dumper.add_representer(str, represent_text)
    Dumper.add_multi_representer(str, represent_text)
    Dumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)
    return Dumper
