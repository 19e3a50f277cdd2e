"""Finds packages for training in another environment, whose interpreter the variable AGENTKIT_TRAINING names."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["VARIABLE", "find_package"]

VARIABLE: Final = "AGENTKIT_TRAINING"


@cache
def find_package(name: str) -> Path:
    """Returns the folder of a package in the environment for training."""
    environment = Path(os.environ[VARIABLE]).parent.parent
    return next(environment.glob(f"lib/python3*/site-packages/{name}"))
