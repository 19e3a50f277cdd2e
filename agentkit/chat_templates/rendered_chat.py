"""`RenderedChat`: the text of a conversation as a model reads it, and the positions of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.ledger.places import BlockPath, format_place
from agentkit.messages.blocks import MediaBlock
from agentkit.reprs import bounded_repr

__all__ = ["OmittedBlock", "RenderedChat", "RenderedMedia"]


@dataclass(frozen=True, slots=True)
class OmittedBlock:
    """Block whose content is missing from the rendered text, completely or in part.

    Attributes:
        path: Index of the message and index of the block.
        reason: Cause of the omission.
    """

    path: BlockPath
    reason: str

    @property
    def place(self) -> str:
        """Place of the block, such as `msgs[2].content[0]`."""
        return format_place(self.path)


@dataclass(frozen=True, slots=True)
class RenderedMedia:
    """Media block and the position of its placeholder in the rendered text.

    Attributes:
        block: The media block.
        offset: Index of the placeholder in the text. None if the template writes no placeholder, or if the
            template changes the texts next to media, so that the index is unknown.
    """

    block: MediaBlock
    offset: int | None


@dataclass(frozen=True, slots=True)
class RenderedChat:
    """Text of a conversation as a model reads it.

    Attributes:
        text: The text. Tokenize the text without adding special tokens, because the template writes them.
        spans: Start and end of each text that the model wrote, as indexes of `text`. Empty if the template does
            not mark these texts (`TemplateReport.marks_spans`). The template decides if a span contains the token
            that ends the turn (`TemplateReport.ends_with_stop_token`).
        media: Media of the kinds for which the template has a placeholder, in the order of the conversation. All
            other media are in `omitted`.
        omitted: Blocks that are missing from the text, completely or in part. First come the blocks that templates
            cannot write, and tool calls whose `raw_input` is not the JSON text of `input` (the text then has only
            `input`). Then come the other blocks whose text is missing.
        prompt_end: End of the prompt, as an index of `text`. If the text ends with a complete reply, the prompt
            ends where this reply starts, usually after a generation prompt such as `<|assistant|>`. Otherwise, the
            index is the length of `text`. None if the start of the reply is unknown.
        spaced_places: Places of the texts to which `on_special_tokens="space"` added spaces.
    """

    text: str
    spans: tuple[tuple[int, int], ...] = ()
    media: tuple[RenderedMedia, ...] = ()
    omitted: tuple[OmittedBlock, ...] = ()
    prompt_end: int | None = None
    spaced_places: tuple[str, ...] = ()

    __repr__ = bounded_repr
