"""Credentials of SDK clients: their checks, and their removal from texts and errors.

Input: clients, options and errors. Output: clean options, and texts without credentials. Read `client_values`
first: it finds the keys and headers of a client.
"""

from __future__ import annotations

__all__: list[str] = []
