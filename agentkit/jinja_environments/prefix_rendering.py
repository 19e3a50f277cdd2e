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
    - The text of an iteration is copied only if everything that the iteration read is the same: messages,
      variables and attributes of namespaces (see `loop_recorder`).
    - A rendering without new iterations runs no code of the template, unless the parts outside of loops would read
      other messages or attribute values.
    - If the rendering of all messages with recorded loops does not have the expected text, no loop is recorded. If
      a rendering with recorded loops fails, `render_chat` renders the messages again. So the errors are those of
      `render_chat`.

Cost
    The number of iterations that run in all renderings together grows with the number of messages, and not with
    its square. Parts of a template outside of loops run in each rendering if they read the number of messages, or
    set an attribute after a loop. Loops in macros and blocks, and loops over other lists such as
    `messages[::-1]`, run in each rendering too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.errors import AgentkitError
from agentkit.jinja_environments.chat_rendering import ChatVariables, build_values, render_chat
from agentkit.jinja_environments.environments import model_environment
from agentkit.jinja_environments.limits import check_size, end_rendering, start_rendering
from agentkit.jinja_environments.loop_recorder import (
    COMPARISONS,
    LoopRecorder,
    Piece,
    current_recorder,
    get_recorded_namespace,
)
from agentkit.jinja_environments.loop_records import LoopText
from agentkit.jinja_environments.message_views import LoopPosition, MessageView

if TYPE_CHECKING:
    from jinja2 import Template, nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["PrefixRenderer"]

_WALK: Final = "walk messages"  # names with a space, which templates cannot use
_COMPARE: Final = "compare attribute"
_LOOP: Final = "agentkit_loop_position"
_FLIPPED: Final = {"eq": "eq", "ne": "ne", "gt": "lt", "gteq": "lteq", "lt": "gt", "lteq": "gteq"}
_REFUSED: Final = frozenset({"Block", "CallBlock", "Extends", "FromImport", "Import", "Include"})
_STATEFUL: Final = frozenset({_LOOP, "caller", "cycler", "joiner", "self"})


class PrefixRenderer:
    """Renderer of the first messages of one conversation. The texts equal those of `render_chat`.

    Args:
        source: Text of the template.
        variables: Variables of the template, with all messages.
        text: Text of all messages without a generation prompt. Loops are recorded only if the rendering with
            recorded loops has this text.
        name: Name of the template in errors.
    """

    def __init__(self, source: str, variables: ChatVariables, text: str, name: str = "chat template") -> None:
        self._source = source
        self._variables = variables
        self._name = name
        self._values = build_values(variables)
        self._recorder = LoopRecorder(self._values["messages"])
        # Cached, because most calls of `find_end` compare the text of the same record with the same text.
        self._starts_with = lru_cache(4)(str.startswith)
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

    def find_end(self, text: str, count: int, *, add_generation_prompt: bool = False) -> int | None:
        """Returns the length of the text of the first messages. Returns None if `text` starts differently.

        Args:
            text: Text that is compared with the text of the first messages.
            count: Number of messages, as for `render`.
            add_generation_prompt: As for `render`.
        """
        position = 0
        for piece in self._list_pieces(count, add_generation_prompt):
            is_start = isinstance(piece, LoopText) and self._starts_with(text, piece.record.text, position)
            if not is_start and not text.startswith(str(piece), position):
                return None
            position += len(piece)
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
        starts = accumulate(map(len, pieces), initial=0)
        loops = [
            (start, piece) for start, piece in zip(starts, pieces, strict=False) if isinstance(piece, LoopText)
        ]
        printed = [(start, loop) for start, loop in loops if len(loop)]
        return printed[0][1].list_spans(printed[0][0]) if len(printed) == 1 else {}

    def _can_record(self, text: str) -> bool:
        """Returns True if the rendering of all messages with recorded loops has the text `text`."""
        try:
            return "".join(map(str, self._render_recorded(len(self._recorder.messages), False))) == text
        except Exception:  # the template refuses the messages, or uses them in an unusual way
            return False

    def _list_pieces(self, count: int, add_generation_prompt: bool) -> list[Piece]:
        if self._is_recorded:
            if pieces := self._recorder.repeat(count, add_generation_prompt):
                return pieces
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
        values = {"add_generation_prompt": add_generation_prompt, **self._variables.others}
        values["messages"], values["namespace"] = MessageView(recorder), get_recorded_namespace()
        template = _compile(self._source)
        recorder.start(count)
        limits, token = start_rendering(count), current_recorder.set(recorder)
        try:
            for piece in template.root_render_func(template.new_context({**self._values, **values})):
                recorder.pieces.append(piece)
            recorder.end(add_generation_prompt)
        finally:
            current_recorder.reset(token)
            end_rendering(limits)
        check_size(sum(map(len, recorder.pieces)))
        return recorder.pieces


# -- templates with recorded loops -------------------------------------------------------------------------------


@cache
def _get_environment() -> ImmutableSandboxedEnvironment:
    from jinja2 import pass_environment

    environment: Any = model_environment()
    environment.filters[_WALK] = _walk
    environment.filters[_COMPARE] = pass_environment(_compare)
    environment.plain_types = (*environment.plain_types, LoopPosition, get_recorded_namespace())
    return cast("ImmutableSandboxedEnvironment", environment)


def _walk(items: Iterable[Any], loop: int, *values: Any) -> Iterator[tuple[Any, LoopPosition]]:
    """Yields each item of a loop with its position. Omits the messages whose iterations the recorder skips."""
    if isinstance(items, MessageView):
        return current_recorder.get().walk(items, loop, values)
    listed = list(items)
    return ((item, LoopPosition(listed, index)) for index, item in enumerate(listed))


def _compare(environment: ImmutableSandboxedEnvironment, owner: Any, name: str, operator: str, other: Any) -> bool:
    """Compares the attribute `name` of `owner` with `other`. The recorder compares attributes of namespaces."""
    if type(owner) is get_recorded_namespace():
        return current_recorder.get().compare_attribute(owner, name, operator, other)
    return COMPARISONS[operator](environment.getattr(owner, name), other)


@lru_cache(64)
def _compile(source: str) -> Template:
    """Compiles a template so that its loops over messages call `LoopRecorder.walk`.

    Raises:
        AgentkitError: The template has a part whose state the recorder cannot store.
    """
    from jinja2 import nodes

    environment = _get_environment()
    tree = environment.parse(source)
    kinds = {type(node).__name__ for node in tree.find_all(nodes.Node)}
    if kinds & _REFUSED or {name.name for name in tree.find_all(nodes.Name)} & _STATEFUL:
        raise AgentkitError("the template has blocks, imports or functions whose state cannot be recorded")
    macros, loops = list(tree.find_all(nodes.Macro)), list(_find_loops(tree.body))
    inner = {id(name) for node in (*macros, *loops) for name in node.find_all(nodes.Name)}
    assigned = {name.name for name in tree.find_all(nodes.Name) if name.ctx == "store" and id(name) not in inner}
    changing = {"add_generation_prompt", *assigned, *(macro.name for macro in macros)}
    for number, loop in enumerate(loops):
        read = {name.name for node in (*loop.body, *macros) for name in node.find_all(nodes.Name)}
        _record_loop(loop, number, sorted(read & changing))
    return environment.from_string(tree)


def _find_loops(body: Iterable[nodes.Node]) -> Iterator[nodes.For]:
    """Yields the loops of a template that can be recorded.

    Such a loop has one variable, and no condition, `else`, recursion or macro. The loop is not inside another
    loop, a macro or a block.
    """
    from jinja2 import nodes

    for node in body:
        if isinstance(node, nodes.If):
            yield from _find_loops([*node.body, *node.elif_, *node.else_])
        elif isinstance(node, nodes.For) and isinstance(node.target, nodes.Name):
            is_special = node.else_ or node.test or node.recursive or any(node.find_all(nodes.Macro))
            if not is_special:
                yield node


def _record_loop(loop: nodes.For, number: int, names: list[str]) -> None:
    """Changes a loop so that `LoopRecorder.walk` chooses its iterations.

    Args:
        loop: Loop over messages.
        number: Index of the loop among the recorded loops of the template.
        names: Variables that the loop can read and whose values can differ between renderings.
    """
    from jinja2 import nodes

    values: list[nodes.Expr] = [nodes.Const(number), *(nodes.Name(name, "load") for name in names)]
    loop.iter = nodes.Filter(loop.iter, _WALK, values, [], None, None)
    loop.target = nodes.Tuple([loop.target, nodes.Name(_LOOP, "store")], "store")
    loop.body = [_replace(node) for node in loop.body]


def _replace(node: Any, is_inner: bool = False) -> Any:
    """Replaces the variable `loop` in a node with a variable that contains a `LoopPosition`.

    If an operand of a comparison is an attribute of a variable, the comparison becomes a call of `_compare`.

    Args:
        node: Node of the body of the loop.
        is_inner: True in the body of an inner loop, which has its own variable `loop`.

    Returns:
        The resulting node.
    """
    from jinja2 import nodes

    if isinstance(node, nodes.Name):
        is_loop = node.name == "loop" and not is_inner
        return nodes.Name(_LOOP, node.ctx, lineno=node.lineno) if is_loop else node
    for name in node.fields:
        value = getattr(node, name)
        is_body = is_inner or (isinstance(node, nodes.For) and name == "body")
        if isinstance(value, list):
            items = cast("list[Any]", value)
            setattr(
                node, name, [_replace(item, is_body) if isinstance(item, nodes.Node) else item for item in items]
            )
        elif isinstance(value, nodes.Node):
            setattr(node, name, _replace(value, is_body))
    return _replace_comparison(node) if isinstance(node, nodes.Compare) else node


def _replace_comparison(node: nodes.Compare) -> nodes.Expr:
    """Returns a call of `_compare` if an operand of the comparison is an attribute of a variable except `loop`.

    Returns all other comparisons unchanged, and also those with several operators, such as `a < b < c`.
    """
    from jinja2 import nodes

    operator, left, right = node.ops[0].op, node.expr, node.ops[0].expr
    if len(node.ops) > 1 or operator not in COMPARISONS:
        return node
    for attribute, name, other in ((right, _FLIPPED[operator], left), (left, operator, right)):
        owner = getattr(attribute, "node", None)
        if not isinstance(attribute, nodes.Getattr) or not isinstance(owner, nodes.Name):
            continue
        if owner.name not in ("loop", _LOOP):
            values = [nodes.Const(attribute.attr), nodes.Const(name), other]
            return nodes.Filter(owner, _COMPARE, values, [], None, None, lineno=node.lineno)
    return node
