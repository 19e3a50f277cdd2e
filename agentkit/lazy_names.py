"""`import_on_first_use`: imports a module only when a program first uses a name from the module."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["import_on_first_use"]


def import_on_first_use(
    package: str, modules: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Returns `__all__`, `__getattr__` and `__dir__` for a package that imports names on first use (PEP 562).

    A program then loads only the modules that it uses. For type checkers, also import the names under
    `if TYPE_CHECKING:`. Assign the result in the `else` branch, because a type checker that sees `__getattr__`
    accepts every name.

    Args:
        package: `__name__` of the package or module.
        modules: Maps the full name of each module to the names to import from it, separated by spaces.

    Example:
        >>> names, get, _ = import_on_first_use(__name__, {"agentkit.messages.message": "Msg"})
        >>> names, get("Msg").__name__
        (['Msg'], 'Msg')
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}
    public = sorted(homes)

    def get_name(name: str) -> object:
        module = homes.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return public, get_name, list_names
