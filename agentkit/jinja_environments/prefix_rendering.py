"""`PrefixRenderer`: renders the first messages of a conversation, for many numbers of messages.

The texts of the conversations `messages[:1]`, `messages[:2]` and so on are nearly equal. Most templates have a
loop over the messages. The renderer records the iterations of such loops, and does not repeat an iteration that
would print the same text.

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
    - The constructor renders all messages with recorded loops. If the result differs from `text`, the renderer
      calls `render_chat` each time.
    - If a rendering with recorded loops fails, `render_chat` renders the messages again. So the errors are those
      of `render_chat`.

Cost
    The number of iterations that run in all renderings together grows with the number of messages, and not with
    its square, if the renderings begin with the most messages. Parts of a template outside of loops run in each
    rendering if they read the number of messages. Loops in macros and blocks, loops with `break` or `continue`,
    and loops over other lists such as `messages[::-1]`, run in each rendering too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from agentkit.jinja_environments.chat_rendering import ChatVariables, build_values, render_chat
from agentkit.jinja_environments.limits import check_size
from agentkit.jinja_environments.loop_recorder import LoopRecorder, Piece
from agentkit.jinja_environments.loop_records import LoopText
from agentkit.jinja_environments.message_views import MessageView
from agentkit.jinja_environments.recorded_template import compile_recorded
from agentkit.jinja_environments.trace_recorder import get_recorded_namespace

__all__ = ["PrefixRenderer"]


class PrefixRenderer:
    """Renderer of the first messages of one conversation. The texts equal those of `render_chat`.

    Args:
        source: Text of the template.
        variables: Variables of the template, with all messages.
        text: Text of all messages without a generation prompt. The constructor renders all messages with recorded
            loops. If the result differs from `text`, the renderer calls `render_chat` each time.
        name: Name of the template in errors.
    """

    def __init__(self, source: str, variables: ChatVariables, text: str, name: str = "chat template") -> None:
        self._source = source
        self._variables = variables
        self._name = name
        self._values = build_values(variables)
        self._recorder = LoopRecorder(self._values["messages"])
        self._is_recorded = self._can_record(text)

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
        self, text: str, count: int, *, add_generation_prompt: bool = False, suffix: str = ""
    ) -> int | None:
        """Returns the length of the text of the first messages without `suffix`.

        Returns None if `text` does not start with this text.

        Args:
            text: Text that is compared with the text of the first messages.
            count: Number of messages, as for `render`.
            add_generation_prompt: As for `render`.
            suffix: Text that is removed from the end of the text of the first messages. If there is no such end,
                the result is None.
        """
        pieces, position = self._list_pieces(count, add_generation_prompt), 0
        if not str(pieces[-1]).endswith(suffix):
            pieces = ["".join(map(str, pieces))]
        last = str(pieces.pop()) if suffix else ""
        if not last.endswith(suffix):
            return None
        pieces.append(last.removesuffix(suffix))
        for piece in pieces:
            if not (
                piece.is_in(text, position) if isinstance(piece, LoopText) else text.startswith(piece, position)
            ):
                return None
            position += _get_size(piece)
        return position

    def list_spans(self, count: int, *, add_generation_prompt: bool = False) -> dict[int, tuple[int, int]]:
        """Returns the start and end of the text of each message, by the index of the message.

        The text of a message is the text that one iteration of a loop over the messages prints. The result is
        empty if no such loop printed a text, or if several loops did.

        Args:
            count: Number of messages, as for `render`.
            add_generation_prompt: As for `render`.
        """
        pieces = self._list_pieces(count, add_generation_prompt)
        starts = accumulate(map(_get_size, pieces), initial=0)
        loops = [
            (start, piece) for start, piece in zip(starts, pieces, strict=False) if isinstance(piece, LoopText)
        ]
        printed = [(start, loop) for start, loop in loops if loop.size]
        return printed[0][1].list_spans(printed[0][0]) if len(printed) == 1 else {}

    def _can_record(self, text: str) -> bool:
        """Returns True if the rendering of all messages with recorded loops has the text `text`."""
        try:
            return "".join(map(str, self._render_recorded(len(self._recorder.messages), False))) == text
        except Exception:  # the template refuses the messages, or uses them in an unusual way
            return False

    def _list_pieces(self, count: int, add_generation_prompt: bool) -> list[Piece]:
        if self._is_recorded:
            try:
                return self._render_recorded(count, add_generation_prompt)
            except Exception:  # the template refuses the messages, or uses them in an unusual way
                pass
        variables = self._variables._replace(
            messages=self._variables.messages[:count], add_generation_prompt=add_generation_prompt
        )
        return [render_chat(self._source, variables, name=self._name).text]

    def _render_recorded(self, count: int, add_generation_prompt: bool) -> list[Piece]:
        recorder = self._recorder
        pieces = recorder.reuse_run(count, add_generation_prompt)
        if pieces is None:
            pieces = recorder.run_template(count, add_generation_prompt, lambda: self._run(add_generation_prompt))
        check_size(sum(map(_get_size, pieces)))
        return pieces

    def _run(self, add_generation_prompt: bool) -> Iterator[str]:
        """Runs the template. Yields the texts outside of recorded loops."""
        values = {"add_generation_prompt": add_generation_prompt, **self._variables.others}
        values["messages"], values["namespace"] = MessageView(self._recorder), get_recorded_namespace()
        template = compile_recorded(self._source)
        return template.root_render_func(template.new_context({**self._values, **values}))


def _get_size(piece: Piece) -> int:
    return len(piece) if isinstance(piece, str) else piece.size
