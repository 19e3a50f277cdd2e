"""The library's loggers: `agentkit`, with a child for each area. Applications configure what is printed.

Records at INFO and above name places, reasons and sizes, never what a conversation says, and no key.
"""

from __future__ import annotations

import logging

__all__ = ["get_logger"]

logging.getLogger("agentkit").addHandler(logging.NullHandler())


def get_logger(area: str = "") -> logging.Logger:
    """Returns the logger of an area, such as `agentkit.budget`; without an area the common one."""
    return logging.getLogger(f"agentkit.{area}" if area else "agentkit")
