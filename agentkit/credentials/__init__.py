"""Checks of the credentials of SDK clients, and removal of these credentials from texts and errors.

The module `credential_checks` checks and cleans API keys, headers and addresses. The module `redaction` removes
credentials from texts and errors. Both modules find the credentials of a client with `client_texts`. Read
`client_texts` first.
"""

from __future__ import annotations

__all__: list[str] = []
