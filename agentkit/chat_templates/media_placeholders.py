"""`find_media`: finds the placeholders of media in the text that a chat template wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from agentkit.chat_templates.rendered_chat import RenderedMedia
from agentkit.errors import TemplateError
from agentkit.jinja_environments.chat_rendering import ChatVariables, Rendering, choose_marks
from agentkit.messages.blocks import MediaBlock

__all__ = ["find_media"]


def find_media(
    text: str,
    chat: ChatVariables,
    media: Sequence[tuple[MediaBlock, dict[str, Any]]],
    render: Callable[[ChatVariables], Rendering],
) -> list[RenderedMedia]:
    """Finds the placeholders of media in the text that a chat template wrote.

    Placeholders differ between templates. So the function renders the messages again, with one private-use
    character before and one after each media part. The positions of these characters are those of the
    placeholders.

    Args:
        text: Text that the template wrote.
        chat: Messages and other variables from which the template wrote the text.
        media: Media blocks in order, each with its part in the messages.
        render: Function that renders messages with the same template.

    Returns:
        One item for each media block. All offsets are None if the template refuses, omits or repeats the added
        characters, or if the characters change the remaining text.
    """
    if not media:
        return []
    start, end = choose_marks(chat.messages)
    parts = {id(part) for _, part in media}
    messages = [_mark_media(message, parts, start, end) for message in chat.messages]
    try:
        marked = render(chat._replace(messages=messages)).text
    except TemplateError:
        return [RenderedMedia(block, None) for block, _ in media]
    offsets = list[int | None]()
    position = 0
    for piece in marked.split(start)[:-1]:
        position += len(piece.replace(end, ""))
        offsets.append(position)
    if marked.replace(start, "").replace(end, "") != text or len(offsets) != len(media):
        offsets = [None] * len(media)
    return [RenderedMedia(block, offset) for (block, _), offset in zip(media, offsets, strict=True)]


def _mark_media(message: Mapping[str, Any], parts: set[int], start: str, end: str) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, list):
        return dict(message)
    marked: list[dict[str, Any]] = []
    for part in cast("list[dict[str, Any]]", content):
        is_media = id(part) in parts
        marked += [{"type": "text", "text": start}, part, {"type": "text", "text": end}] if is_media else [part]
    return {**message, "content": marked}
