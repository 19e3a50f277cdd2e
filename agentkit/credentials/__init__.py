"""Credentials of SDK clients: checks of keys and headers, and removal of credentials from texts and errors.

The input is SDK clients, their options, and errors. The output is cleaned options, and texts without credentials.
Read `client_values` first, which finds the keys and headers in a client.
"""

from __future__ import annotations

__all__: list[str] = []
