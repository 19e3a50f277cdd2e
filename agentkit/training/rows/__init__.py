"""Reads and writes rows of data sets, in the formats of other libraries.

Read `row_formats` first: the table of the formats. `row_reader` and `row_writer` convert rows to samples and back,
and `loss_log` collects what a format cannot represent. Each module with the suffix `_rows` contains one
format or several similar formats. `chat_message_reader` and `chat_message_writer` convert the messages of OpenAI's
API, which most formats contain.
"""

from __future__ import annotations

__all__: list[str] = []
