"""`compile_recorded`: compiles a chat template so that a `LoopRecorder` runs its loops over messages.

The template `{% for m in messages %}{{ m.role }}{% endfor %}` becomes, in effect:

    {% macro agentkit_body_0(m, loop) %}{{ m.role }}{% endmacro %}
    {{ messages | add_loop(agentkit_body_0, 0) }}

The filter passes the macro to the recorder, which can call the macro again in later renderings. (The real names of
the filters contain a space, so templates cannot call them.)

The inner loop `{% for n in messages[loop.index:] %}{{ n.role }}{% endfor %}` becomes:

    {% for n in messages[loop.index:] | iterate_items %}{{ n.role }}{{ "" | count_change }}{% endfor %}

The recorder yields the messages, and stores for how many messages the inner loop does the same. This is needed for
templates that look ahead (20 of the 72 templates of trl 1.16). In both kinds of loops, `range(messages | length)`
becomes a list of indexes, which is needed for Gemma 4.

The comparison `loop.index0 > ns.last` with an attribute of a namespace becomes:

    ns | compare_attribute("last", "lt", loop.index0)

The recorder stores all values of the attribute for which the result is the same. This is needed for Qwen 3 and 26
other templates, which compare each message with the last question.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from jinja2 import Template, nodes, pass_context
from jinja2.compiler import find_undeclared

from agentkit.errors import AgentkitError
from agentkit.jinja_environments.environments import model_environment
from agentkit.jinja_environments.namespaces import RecordedNamespace, current_recorder
from agentkit.jinja_environments.recorded_messages import IndexView, LoopPosition, MessageView, RecordedItems
from agentkit.jinja_environments.trace_recorder import COMPARISONS

__all__ = ["compile_recorded"]

_ADD_LOOP: Final = "add loop"  # filter names with a space, so that templates cannot call the filters
_ITERATE: Final = "iterate items"
_LIST_INDEXES: Final = "list indexes"
_COUNT_CHANGE: Final = "count change"
_COMPARE: Final = "compare attribute"
_BODY: Final = "agentkit_body_"
_FLIPPED: Final = {"eq": "eq", "ne": "ne", "gt": "lt", "gteq": "lteq", "lt": "gt", "lteq": "gteq"}
_REFUSED: Final = (nodes.Block, nodes.CallBlock, nodes.Extends, nodes.FromImport, nodes.Import, nodes.Include)
_STATEFUL: Final = frozenset({"caller", "cycler", "joiner", "kwargs", "self", "varargs"})
_READABLE: Final = frozenset({"first", "index", "index0", "previtem"})


def _add_loop(items: Any, body: Any, loop_index: int, *values: Any) -> str:
    """Runs a loop. Returns an empty text, because the recorder adds the text of the loop."""
    if not isinstance(items, RecordedItems):
        raise AgentkitError("the loop is not over messages")
    items.recorder.add_loop(items, loop_index, body._func, values)
    return ""


def _iterate_items(items: Iterable[Any]) -> Iterable[Any]:
    """Returns the items of an inner loop. If the items are messages, the result is an iterator of the recorder."""
    return items.recorder.iterate_items(items) if isinstance(items, RecordedItems) else items


def _list_indexes(items: Any, low: int) -> IndexView | range:
    """Returns the indexes of the items from `low` on."""
    return IndexView(items, low) if isinstance(items, MessageView) else range(low, len(items))


def _count_change(_: Any, text: str) -> str:
    """Tells the recorder that an inner loop prints a text. Returns the text."""
    current_recorder.get().count_change()
    return text


def _compare(context: Any, owner: Any, name: str, operator: str, other: Any) -> bool:
    """Compares the attribute `name` of `owner` with `other`. The recorder compares attributes of namespaces."""
    if type(owner) is RecordedNamespace:
        return current_recorder.get().compare_attribute(owner, name, operator, other)
    return COMPARISONS[operator](context.environment.getattr(owner, name), other)


_ENVIRONMENT: Final[Any] = model_environment()
_ENVIRONMENT.filters.update(
    {
        _ADD_LOOP: _add_loop,
        _ITERATE: _iterate_items,
        _LIST_INDEXES: _list_indexes,
        _COUNT_CHANGE: pass_context(_count_change),
        _COMPARE: pass_context(_compare),
    }
)
_ENVIRONMENT.hidden_types = (RecordedItems,)
_ENVIRONMENT.readable_types = _ENVIRONMENT.readable_types | {LoopPosition, RecordedNamespace}


@lru_cache(64)
def compile_recorded(source: str) -> Template:
    """Compiles a template. Before a rendering, set `current_recorder` to a `LoopRecorder`.

    Raises:
        AgentkitError: The template has a part whose state the recorder cannot store, such as a `{% block %}`.
    """
    tree = _ENVIRONMENT.parse(source)
    names = _find_names(tree)
    _refuse_unrecordable(tree, names)
    rewriter = _TreeRewriter(names)
    rewriter.replace_loops(tree.body)
    rewriter.replace_nodes(tree)
    return cast("Template", _ENVIRONMENT.from_string(tree))


class _Names(NamedTuple):
    """Names of variables of a template.

    Attributes:
        views: Variables that can be the messages, or a part of them.
        namespaces: Variables that can be namespaces.
        changing: Variables whose values can differ between two runs of a loop.
        late: Variables that the template sets after the start of the first recorded loop, outside of recorded
            loops and macros.
        macro_names: Variables that macros read or set.
    """

    views: set[str]
    namespaces: set[str]
    changing: set[str]
    late: set[str]
    macro_names: set[str]


def _find_names(tree: nodes.Template) -> _Names:
    views, namespaces = {"messages"}, set[str]()
    for assign in [*tree.find_all(nodes.Assign)] * 2:  # twice, because a loop may use a name before its assignment
        names = _list_names([assign.node])
        if isinstance(assign.target, nodes.Name) and names & {*views, "namespace"}:
            (namespaces if "namespace" in names else views).add(assign.target.name)
    parts, macros = list(tree.find_all(nodes.Node)), list(tree.find_all(nodes.Macro))
    loops = [items[index] for items, index in _find_loops(tree.body, views)]
    inner = {id(name) for node in (*macros, *loops) for name in node.find_all(nodes.Name)}
    first = next((index for index, part in enumerate(parts) if part in loops), len(parts))
    changing = {"add_generation_prompt", *_list_assigned(parts, inner), *(macro.name for macro in macros)}
    return _Names(views, namespaces, changing, _list_assigned(parts[first:], inner), _list_names(macros))


def _refuse_unrecordable(tree: nodes.Template, names: _Names) -> None:
    """Checks that the recorder can store the state of all parts of the template.

    Raises:
        AgentkitError: The recorder cannot store the state of a part.
    """
    # In a later rendering, a macro would read the value that a variable had at the end of an earlier run.
    is_late = any(
        find_undeclared(macro.body, names.late - {arg.name for arg in macro.args})
        or names.late & {item.name for item in macro.find_all(nodes.NSRef)}
        for macro in tree.find_all(nodes.Macro)
    )
    if is_late or any(tree.find_all(_REFUSED)) or _list_names([tree]) & _STATEFUL:
        raise AgentkitError("the template has blocks, imports or variables whose state cannot be recorded")


def _find_loops(body: list[Any], views: set[str]) -> Iterator[tuple[list[Any], int]]:
    """Yields each loop over messages that can be recorded: the list that contains the loop, and the index.

    Such a loop has one variable, and no condition, `else`, recursion, `break`, `continue` or macro. The loop is
    not inside another loop, a macro or a block.
    """
    for index, node in enumerate(body):
        if isinstance(node, nodes.If):
            for items in (node.body, node.elif_, node.else_):
                yield from _find_loops(items, views)
        elif (
            isinstance(node, nodes.For)
            and isinstance(node.target, nodes.Name)
            and _is_message_loop(node, views)
            and not any(node.find_all((nodes.Macro, nodes.Break, nodes.Continue)))
        ):
            yield body, index


def _is_message_loop(loop: nodes.For, views: set[str]) -> bool:
    """Returns True if a loop iterates over messages, and has no condition, no `else` and no recursion.

    Slices with an end or a step, such as `messages[:2]` or `messages[::-1]`, are excluded.
    """
    is_slice = any(item.step or item.stop for item in loop.iter.find_all(nodes.Slice))
    has_views = bool(_list_names([loop.iter]) & views) and not is_slice
    return has_views and not (loop.else_ or loop.test or loop.recursive)


class _TreeRewriter:
    """Rewriter of the syntax tree of a template.

    Args:
        names: Names of variables of the template.
    """

    def __init__(self, names: _Names) -> None:
        self._names = names

    def replace_loops(self, body: list[Any]) -> None:
        """Replaces each loop that can be recorded with a macro and a call of `_add_loop`."""
        for loop_index, (items, index) in enumerate([*_find_loops(body, self._names.views)]):
            loop, name = items[index], f"{_BODY}{loop_index}"
            read = (_list_names(loop.body) | self._names.macro_names) & self._names.changing
            names = sorted(read - {"loop", loop.target.name})
            args = [nodes.Name(arg, "param") for arg in (loop.target.name, "loop", *names)]
            values: list[nodes.Expr] = [nodes.Name(item, "load") for item in names]
            values = [nodes.Name(name, "load"), nodes.Const(loop_index), *values]  # arguments of `_add_loop`
            call = nodes.Filter(self._as_view(loop.iter), _ADD_LOOP, values, [], None, None, lineno=loop.lineno)
            parts = [nodes.Macro(name, args, [], loop.body, lineno=loop.lineno), nodes.Output([call])]
            # One statement replaces the loop, so that the indexes of the other loops stay the same.
            items[index] = nodes.If(nodes.Const(True), parts, [], [], lineno=loop.lineno)

    def _as_view(self, items: Any) -> Any:
        """Returns the node of the items of a loop. Replaces `range(0, messages | length)` with `_list_indexes`."""
        if isinstance(items, nodes.Call) and getattr(items.node, "name", "") == "range" and len(items.args) < 3:
            *start, end = items.args
            if isinstance(end, nodes.Filter) and end.name == "length" and isinstance(end.node, nodes.Name):
                return nodes.Filter(end.node, _LIST_INDEXES, start or [nodes.Const(0)], [], None, None)
        return items

    def replace_nodes(self, node: Any) -> Any:
        """Replaces the inner loops over messages and the comparisons of attributes. Returns the resulting node."""
        for name in node.fields:
            value = getattr(node, name)
            if isinstance(value, list):
                items = cast("list[Any]", value)
                items[:] = [self.replace_nodes(item) if isinstance(item, nodes.Node) else item for item in items]
            elif isinstance(value, nodes.Node):
                setattr(node, name, self.replace_nodes(value))
        if isinstance(node, nodes.Compare):
            return self._replace_comparison(node)
        if (
            isinstance(node, nodes.For)
            and _is_message_loop(node, self._names.views)
            and not any(node.find_all(nodes.Break))
        ):
            self._replace_inner(node)
        return node

    def _replace_inner(self, loop: nodes.For) -> None:
        """Rewrites an inner loop, so that the recorder counts the items that print or set something.

        A loop whose body can read the number of items stays unchanged.
        """
        read = [item for node in loop.body for item in node.find_all(nodes.Getattr) if item.attr in _READABLE]
        owners = {id(item.node) for item in read}
        names = [name for node in loop.body for name in node.find_all(nodes.Name) if name.name == "loop"]
        if all(id(name) in owners for name in names):
            loop.iter = nodes.Filter(self._as_view(loop.iter), _ITERATE, [], [], None, None, lineno=loop.lineno)
            for output in [item for node in loop.body for item in _find_outputs(node)]:
                output.nodes.append(nodes.Filter(nodes.Const(""), _COUNT_CHANGE, [], [], None, None))

    def _replace_comparison(self, node: nodes.Compare) -> nodes.Expr:
        """Returns a call of `_compare` if an operand of the comparison is an attribute of a namespace.

        Returns all other comparisons unchanged, and also those with several operators, such as `a < b < c`.
        """
        operator, left, right = node.ops[0].op, node.expr, node.ops[0].expr
        if len(node.ops) > 1 or operator not in COMPARISONS:
            return node
        for attribute, name, other in ((right, _FLIPPED[operator], left), (left, operator, right)):
            owner = getattr(attribute, "node", None)
            if isinstance(attribute, nodes.Getattr) and getattr(owner, "name", "") in self._names.namespaces:
                values = [nodes.Const(attribute.attr), nodes.Const(name), other]
                return nodes.Filter(owner, _COMPARE, values, [], None, None, lineno=node.lineno)
        return node


def _find_outputs(node: Any) -> Iterator[nodes.Output]:
    """Yields a node and the nodes inside the node, but only those that print something."""
    if isinstance(node, nodes.Output):
        yield node
    yield from node.find_all(nodes.Output)


def _list_assigned(parts: Iterable[nodes.Node], inner: set[int]) -> set[str]:
    """Returns the names of the variables that parts of a template set.

    Args:
        parts: Parts of the template.
        inner: Ids of the nodes in macros and recorded loops. These nodes are ignored.
    """
    return {
        part.name
        for part in parts
        if isinstance(part, nodes.Name) and part.ctx == "store" and id(part) not in inner
    }


def _list_names(parts: Iterable[Any]) -> set[str]:
    """Returns the names of the variables that parts of a template read or set."""
    kinds = (nodes.Name, nodes.NSRef)
    names = {name.name for part in parts for name in part.find_all(kinds)}
    return names | {part.name for part in parts if isinstance(part, kinds)}
