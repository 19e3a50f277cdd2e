"""Loggers of the library: `agentkit`, and a child logger for each area. The application configures the handlers.

Log records at DEBUG and INFO contain places, reasons and sizes, but no conversation text and no credentials. If a
tool or a function that observes an adapter raises an exception, a log record at WARNING contains the traceback.
"""

from __future__ import annotations

import logging

__all__ = ["get_logger"]

logging.getLogger("agentkit").addHandler(logging.NullHandler())


def get_logger(area: str = "") -> logging.Logger:
    """Returns the logger for an area, such as `agentkit.budget`, or the logger `agentkit` if `area` is empty."""
    return logging.getLogger(f"agentkit.{area}" if area else "agentkit")
