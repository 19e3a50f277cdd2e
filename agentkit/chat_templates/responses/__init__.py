"""Reads the text of a model's reply: thinking, tool calls and content.

Read `response_template` first. `response_splitter` finds the markers in a text that arrives in pieces, and
`response_reader` creates a region for the text between two markers. `response_regions` and `call_region` add the
text of a region to the reply. The folder `builtin` has the built-in response templates.
"""

from __future__ import annotations

__all__: list[str] = []
