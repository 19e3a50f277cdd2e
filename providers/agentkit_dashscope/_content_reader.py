"""`ContentReader` converts the content of a reply (a string or a list of parts) to blocks."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, Final

from agentkit.provider_kit import BlockKey, MediaBlock, ReplyBuilder, URLSource, as_list, as_object
from agentkit_dashscope._increments import Increments
from agentkit_dashscope._reply_media import BLOCK_TYPES, create_media_block

__all__ = ["ContentReader", "TEXT"]

_CONTENT: Final = 1
"""First item of the keys of text and media blocks. The blocks of a message are sorted by keys such as `(1, 0)`."""

TEXT: Final = (_CONTENT, 0)
"""Key of the first text block in a message."""

_CONTENT_KEYS: Final = frozenset({*BLOCK_TYPES, "text", "type"})


class ContentReader:
    """Converter from the content of one reply to blocks. Adjacent texts form one block.

    Attributes:
        extras: Additional fields of content parts, as one dict per part. Blocks cannot store these fields.
    """

    def __init__(self, reply: ReplyBuilder, increments: Increments[BlockKey]) -> None:
        self.extras: list[Any] = []
        self._reply = reply
        self._increments = increments
        self._block_index = 0  # index of the block that contains the last part
        self._is_in_text = True  # False if the last part is a media item
        self._media: set[str] = set()  # data and URLs of all media items in the reply

    def read(self, content: object) -> None:
        """Adds the content of a stream event.

        In an incremental stream, an event contains only new content. In a cumulative stream, an event repeats all
        earlier content before the new content.
        """
        if isinstance(content, str):
            self._add_text(TEXT, content)
        else:
            self._read_parts(as_list(content))

    def add_media(self, key: BlockKey, block: MediaBlock) -> None:
        """Adds a media item. Ignores a repeated item, unless the stream is known to be incremental."""
        source = block.source.url if isinstance(block.source, URLSource) else block.source.data
        is_repeated = source in self._media and self._increments.cumulative is not False
        if not is_repeated and not self._reply.has_block(key):
            self._media.add(source)
            self._reply.add_block(key, block)

    def _add_text(self, key: BlockKey, piece: str) -> None:
        self._reply.add_text(key, self._increments.add(key, piece))

    def _read_parts(self, parts: list[Any]) -> None:
        """Adds the parts of a stream event.

        If the parts repeat all earlier content, the method starts again at the first block. Otherwise, the method
        continues at the last block.
        """
        if len(parts) == 1 and self._read_single_text(parts[0]):
            return
        objects = [as_object(part) for part in parts]
        if self._is_whole_content(objects):
            self._restart()
        texts: list[str] = []
        for part in objects:
            text = part.get("text")
            if text and isinstance(text, str):
                if not self._is_in_text:
                    self._block_index, self._is_in_text = self._block_index + 1, True
                texts.append(text)
            if len(part) > 1 or not text:
                self._flush(texts)
                self._read_media(part)
        self._flush(texts)

    def _read_single_text(self, part: dict[str, Any] | None) -> bool:
        """Adds a part that contains only text. This method is a fast path for the most common parts.

        Returns False, without adding the part, if the part needs `_read_parts`.
        """
        if not isinstance(part, dict) or len(part) > 1 or type(text := part.get("text")) is not str or not text:
            return False
        if self._increments.cumulative:
            self._restart()
        elif self._increments.cumulative is None or not self._is_in_text:
            return False
        self._add_text((_CONTENT, self._block_index), text)
        return True

    def _restart(self) -> None:
        self._block_index, self._is_in_text, self.extras = 0, True, []

    def _is_whole_content(self, parts: list[dict[str, Any]]) -> bool:
        """Returns True if the parts repeat all earlier content.

        If it is unknown whether the stream is cumulative (see `Increments`), the method compares texts. The result
        is then True if the first text in `parts` begins with the text of the first block.
        """
        if self._increments.cumulative is not None:
            return self._increments.cumulative
        leading = takewhile(lambda part: not part.keys() & BLOCK_TYPES.keys(), parts)
        first_text = "".join(text for part in leading if isinstance(text := part.get("text"), str))
        return bool(first_text) and self._increments.extends(TEXT, first_text)

    def _flush(self, texts: list[str]) -> None:
        """Appends the strings in `texts` to the current text block, and empties the list."""
        if texts:
            self._add_text((_CONTENT, self._block_index), "".join(texts))
            texts.clear()

    def _read_media(self, part: dict[str, Any]) -> None:
        extras = {key: item for key, item in part.items() if key not in _CONTENT_KEYS}
        if extras:
            self.extras.append(extras)
        for media_kind in BLOCK_TYPES:
            block = create_media_block(media_kind, part.get(media_kind)) if part.get(media_kind) else None
            if block is not None:
                self._block_index, self._is_in_text = self._block_index + 1, False
                self.add_media((_CONTENT, self._block_index), block)
