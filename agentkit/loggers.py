"""Loggers of the library: `agentkit`, and a child logger for each area. The application configures handlers.

Records at DEBUG and INFO hold places, reasons and sizes: no text of the conversation and no credentials. The
WARNING about a tool's exception has its traceback.
"""

from __future__ import annotations

import logging

__all__ = ["get_logger"]

logging.getLogger("agentkit").addHandler(logging.NullHandler())


def get_logger(area: str = "") -> logging.Logger:
    """Returns the logger of an area, such as `agentkit.budget`; without an area, the logger `agentkit`."""
    return logging.getLogger(f"agentkit.{area}" if area else "agentkit")
