"""`find_media`: finds the placeholders of media in the text that a chat template wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias, cast

from agentkit.chat_templates.rendered_chat import RenderedMedia
from agentkit.errors import TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.jinja_environments.generation_spans import choose_marks
from agentkit.messages.blocks import MediaBlock

__all__ = ["find_media"]

_Media: TypeAlias = Sequence[tuple[MediaBlock, dict[str, Any]]]
_Render: TypeAlias = Callable[[ChatVariables], Rendering]


def find_media(
    text: str,
    chat: ChatVariables,
    media: _Media,
    render: _Render,
    placeholder: Callable[[str], str],
) -> list[RenderedMedia]:
    """Finds the placeholders of media in the text that a chat template wrote.

    Placeholders differ between templates. So the function renders the messages again, with one private-use
    character before and one after each media part. Each placeholder is between two of these characters. Some
    templates write all media before the texts, or read the type of the first part. For these templates, the
    function adds the characters before and after each text instead, and searches outside the texts.

    Args:
        text: Text that the template wrote.
        chat: Messages and other variables from which the template wrote the text.
        media: Media blocks in order, each with its part in the messages.
        render: Function that renders messages with the same template.
        placeholder: Function that returns the placeholder of a kind of media.

    Returns:
        One item for each media block. All offsets are None if the added characters change the remaining text, or
        if the number of placeholders differs from the number of media.
    """
    if not media:
        return []
    offsets = _find_marked(text, chat, media, render) or _find_placeholders(text, chat, media, render, placeholder)
    if offsets is None:
        return [RenderedMedia(block, None) for block, _ in media]
    return [RenderedMedia(block, offset) for (block, _), offset in zip(media, offsets, strict=True)]


def _find_marked(text: str, chat: ChatVariables, media: _Media, render: _Render) -> list[int] | None:
    """Inserts a unique character before and after each media item, and returns the positions of the media.

    Returns None if the template moves media or these characters.
    """
    start, end = choose_marks(chat.messages)
    parts = {id(part) for _, part in media}

    def mark(part: dict[str, Any]) -> list[dict[str, Any]]:
        is_media = id(part) in parts
        return [{"type": "text", "text": start}, part, {"type": "text", "text": end}] if is_media else [part]

    marked = _render_parts(chat, render, mark)
    pieces = marked.split(start)
    if start + end in marked or marked.replace(start, "").replace(end, "") != text or len(pieces) <= len(media):
        return None
    lengths = [len(piece.replace(end, "")) for piece in pieces[:-1]]
    return [*accumulate(lengths)] if len(lengths) == len(media) else None


def _find_placeholders(
    text: str, chat: ChatVariables, media: _Media, render: _Render, placeholder: Callable[[str], str]
) -> list[int] | None:
    """Returns the positions of the placeholders. Returns None if the numbers of placeholders and media differ."""
    start, end = choose_marks(chat.messages)

    def mark(part: dict[str, Any]) -> list[dict[str, Any]]:
        content = str(part.get("text", "")).strip()
        if not content:
            return [part]
        return [{**part, "text": part["text"].replace(content, f"{start}{content}{end}")}]

    marked = _render_parts(chat, render, mark)
    if marked.replace(start, "").replace(end, "") != text:
        return None
    # The texts of messages are replaced by texts of the same length in which no placeholder can occur.
    pattern = f"{start}([^{start}{end}]*){end}"
    template_text = re.sub(pattern, lambda match: start * len(match[1]), marked)
    offsets: dict[str, list[int]] = {}
    for kind in {block.type for block, _ in media}:
        word = placeholder(kind).strip()
        offsets[kind] = [match.start() for match in re.finditer(re.escape(word), template_text)] if word else []
        if len(offsets[kind]) != sum(block.type == kind for block, _ in media):
            return None
    remaining = {kind: iter(positions) for kind, positions in offsets.items()}
    return [next(remaining[block.type]) for block, _ in media]


def _render_parts(
    chat: ChatVariables, render: _Render, change: Callable[[dict[str, Any]], list[dict[str, Any]]]
) -> str:
    """Changes the parts of the messages, and renders them. Returns "" if the template refuses the messages."""

    def change_message(message: Mapping[str, Any]) -> dict[str, Any]:
        content = message["content"]
        if isinstance(content, str):
            part = change({"type": "text", "text": content})
            return {**message, "content": part[0]["text"]}
        parts = cast("list[dict[str, Any]]", content)
        return {**message, "content": [item for part in parts for item in change(part)]}

    try:
        return render(chat._replace(messages=[*map(change_message, chat.messages)])).text
    except TemplateError:
        return ""
