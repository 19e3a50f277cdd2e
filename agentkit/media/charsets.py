"""Text in another charset than UTF-8, where its media type names one."""

from __future__ import annotations

import base64
import re

from agentkit.messages.sources import encode

__all__ = ["in_utf8"]


def in_utf8(data: str, media_type: str) -> str:
    """Base64 text of a text in UTF-8, given the media type it came with, parameters and all.

    As it is where no other charset is named, none that is known, or one that the bytes are not in.
    """
    named = _CHARSET.search(media_type)
    codec = _CODECS.get(named[1].lower()) if named else None
    if codec is None:
        return data
    try:
        return encode(base64.b64decode(data).decode(codec).encode())
    except UnicodeError:
        return data


_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)

# WHATWG Encoding Standard, 4.2, "Names and labels": the common labels, and Python's codec for each. UTF-8 and
# ASCII need none; UTF-16 is not among them: its bytes are not taken for text.
_CODECS: dict[str, str] = {
    **dict.fromkeys(("iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1", "cp1252"), "cp1252"),
    **{f"iso-8859-{number}": f"iso8859_{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{number}": f"cp{number}" for number in range(1250, 1259)},
    "iso-8859-9": "cp1254", "iso-8859-11": "cp874", "macintosh": "mac_roman",
    "koi8-r": "koi8_r", "koi8-u": "koi8_u",
    "gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs",
    "euc-jp": "euc_jp", "shift_jis": "cp932", "shift-jis": "cp932", "sjis": "cp932", "euc-kr": "cp949",
}  # fmt: skip
