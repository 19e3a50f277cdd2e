"""Checks of the credentials of SDK clients, and removal of these credentials from texts and errors.

The module `credential_checks` checks API keys, headers and addresses, and removes white space around them. The
module `redaction` removes credentials from texts and errors. Both modules use `client_texts` to find the
credentials of a client. Read `client_texts` first.
"""

from __future__ import annotations

__all__: list[str] = []
