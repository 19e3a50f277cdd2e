"""`PrefixRenderer`: renders the first n messages of a conversation, for many values of n.

The texts of the conversations `messages[:1]`, `messages[:2]` and so on are nearly equal. Most templates have a
loop over the messages. The renderer records the iterations of such loops, and does not repeat an iteration that
would print the same text. In the package `training`, `tokenize` and `split_rewritten` use this renderer.
`ChatTemplate.render` does not use this renderer.

Copied text
    The template `{% for m in messages %}{{ m.role }},{% if loop.last %}end{% endif %}{% endfor %}` prints
    `user,assistant,user,end` for three messages. The record of the loop has three iterations. Each iteration read
    its own message, and `loop.last` read whether there is a next message. In the rendering of the first two
    messages, everything that the first iteration read is the same, so its text `user,` is copied. The second
    iteration read that a third message follows, which is not true now. So this iteration runs again, and prints
    `assistant,end`.

Rules
    - The text of an iteration is copied only if the iteration would read the same values: variables, attributes of
      namespaces, and tests such as `loop.last`. The number of messages may differ if no such test changes. See
      `loop_recorder`.
    - A rendering calls the body of a loop for the other iterations. The whole template runs again only if a part
      outside of loops would read another number of messages, or other values of attributes.
    - Before the first rendering, all messages are rendered with recorded loops. If the text differs from the text
      of `render_chat`, the renderer calls `render_chat` each time.
    - If a rendering with recorded loops fails, `render_chat` renders the messages again. So the errors are those
      of `render_chat`.

Cost
    The number of iterations that run in all renderings together grows with the number of messages, and not with
    its square, if the rendering with the most messages is the first. Parts of a template outside of loops run in
    each rendering if they read the number of messages. Other loops run in each rendering too: loops in macros, in
    `{% set %}` or `{% filter %}` blocks, with `break` or `continue`, or over lists such as `messages[::-1]`.
    Templates with `{% block %}`, `{% call %}`, `include` or `import` are rendered completely each time.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from agentkit.jinja_environments.chat_rendering import Rendering, render_chat
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.jinja_environments.loop_records import LoopText, Piece

if TYPE_CHECKING:
    from agentkit.jinja_environments.loop_recorder import LoopRecorder

__all__ = ["PrefixRenderer"]


class PrefixRenderer:
    """Renderer of the first messages of one conversation. The texts equal those of `render_chat`.

    Args:
        source: Text of the template.
        chat: Variables of the template, with all messages.
        name: Name of the template in errors.
    """

    def __init__(self, source: str, chat: ChatVariables, name: str = "chat template") -> None:
        self._source = source
        self._chat = chat
        self._name = name

    @cached_property
    def rendering(self) -> Rendering:
        """Rendering of all messages.

        Raises:
            TemplateError: The template is invalid, refuses the messages, or exceeds a limit.
            MissingExtraError: The package jinja2 is not installed.
        """
        return render_chat(self._source, self._chat, name=self._name)

    @cached_property
    def _recorder(self) -> LoopRecorder | None:
        """Recorder of the loops. None if the text of all messages with recorded loops differs from `rendering`."""
        try:
            # `rendering` is computed first: `render_chat` stops a hostile template, and reports a missing jinja2.
            expected = self.rendering.text
            from agentkit.jinja_environments.loop_recorder import LoopRecorder

            recorder = LoopRecorder(self._source, self._chat)
            pieces = recorder.render(len(self._chat.messages), self._chat.add_generation_prompt)
            return recorder if "".join(map(str, pieces)) == expected else None
        except Exception:  # the template refuses the messages, or uses the messages in a way that is not recorded
            return None

    def render(self, count: int, *, add_generation_prompt: bool = False) -> str:
        """Returns the text of the first messages.

        Args:
            count: Number of messages.
            add_generation_prompt: True to end the text with the start of an assistant turn.

        Raises:
            TemplateError: The template is invalid, refuses the messages, or exceeds a limit.
            MissingExtraError: The package jinja2 is not installed.
        """
        return "".join(map(str, self._list_pieces(count, add_generation_prompt)))

    def find_end(
        self, text: str, count: int, *, add_generation_prompt: bool = False, removed_suffix: str = ""
    ) -> int | None:
        """Returns the length of the text of the first messages, without the removed suffix.

        Returns None if `text` does not start with this text.

        Args:
            text: Text that is compared with the text of the first messages.
            count: Number of messages, as for `render`.
            add_generation_prompt: As for `render`.
            removed_suffix: Text that is removed from the end of the text of the first messages. If the text has
                another end, the result is None.
        """
        pieces, position = self._list_pieces(count, add_generation_prompt), 0
        if removed_suffix:
            pieces = pieces if str(pieces[-1]).endswith(removed_suffix) else ["".join(map(str, pieces))]
            last = str(pieces[-1])
            if not last.endswith(removed_suffix):
                return None
            pieces[-1] = last.removesuffix(removed_suffix)
        for piece in pieces:
            if not (text.startswith(piece, position) if isinstance(piece, str) else piece.is_in(text, position)):
                return None
            position += len(piece)
        return position

    def list_spans(self, count: int, *, add_generation_prompt: bool = False) -> dict[int, tuple[int, int]]:
        """Returns a dict that maps the index of each message to the start and end of its text.

        The text of a message is the text that one iteration of a loop over the messages prints. The result is
        empty if no such loop printed a text, or if several loops did.

        Args:
            count: Number of messages, as for `render`.
            add_generation_prompt: As for `render`.
        """
        pieces = self._list_pieces(count, add_generation_prompt)
        starts = accumulate(map(len, pieces), initial=0)
        loops = [
            (start, piece)
            for start, piece in zip(starts, pieces, strict=False)
            if isinstance(piece, LoopText) and len(piece)
        ]
        return loops[0][1].list_spans(loops[0][0]) if len(loops) == 1 else {}

    def _list_pieces(self, count: int, add_generation_prompt: bool) -> list[Piece]:
        if self._recorder is not None:
            try:
                return self._recorder.render(count, add_generation_prompt)
            except Exception:  # the template refuses the messages, or uses a part that is not recorded
                pass
        messages = self._chat.messages[:count]
        chat = self._chat._replace(messages=messages, add_generation_prompt=add_generation_prompt)
        return [render_chat(self._source, chat, name=self._name).text]
