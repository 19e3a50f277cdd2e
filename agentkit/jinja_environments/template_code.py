# ruff: noqa: D102, N802 - jinja calls the methods `visit_…` by the names of its nodes
"""`BoundedCodeGenerator`: writes the Python code of templates, with limits and fast access to values of dicts.

The code differs from the code of jinja in these points:

- A loop, macro, block or template counts the steps of its body each time that the body runs.
- Operators and slices that create values call functions of `operators` and `limits`, which limit the results.
- `message.role` reads the key of a dict first if no method of dicts has this name. The result is the
  same as in jinja's sandbox, which searches for an attribute first.
- Filters and tests are read from the environment where they are used.
- `get` of dicts, and `startswith` and `endswith` of texts, are called without the checks of jinja's sandbox if all
  arguments are constants. Other methods of texts are called in this way if all arguments are constants or names.

To prevent the injection of code, names and texts of a template are written with `repr`. Only names in a list of
allowed names are written without `repr`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators

from agentkit.jinja_environments.generation_spans import SPAN_END, SPAN_START
from agentkit.jinja_environments.limited_filters import COUNT_ITEM
from agentkit.jinja_environments.limits import check_bits
from agentkit.jinja_environments.text_methods import DICT_ATTRIBUTES, FREE_METHODS, TEXT_METHODS

__all__ = ["BoundedCodeGenerator", "insert_step_counters"]

_STEPS: Final = 3  # number of steps for each node
_BODY: Final = 5  # further nodes counted for each run of a body, because the start of a run needs time
_PRINTED: Final = 6  # further nodes counted for each printed value, because its text needs memory
_CALLS: Final = frozenset({nodes.Call, nodes.Filter, nodes.Test})
_UNCOUNTED: Final = frozenset({nodes.Const, nodes.Keyword, nodes.Operand, nodes.TemplateData})
_BODIES: Final = frozenset({nodes.Block, nodes.CallBlock, nodes.For, nodes.Macro, nodes.Template})
_IMPORTS: Final = """\
from agentkit.jinja_environments.functions import raise_error
from agentkit.jinja_environments.limits import count_member_test, count_read, count_silent_steps, count_slice
from agentkit.jinja_environments.limits import count_steps, measure
from agentkit.jinja_environments.operators import add, concatenate, subtract
from agentkit.jinja_environments.text_methods import call_text_method"""
_LOOP_NAMES: Final = frozenset({"first", "index", "index0", "last", "length", "nextitem", "previtem", "revindex"})


def insert_step_counters(node: Any) -> int:
    """Adds a statement that counts steps to each body of a template, loop, macro or block.

    Returns:
        Number of nodes that the surrounding body must count for this node. The nodes in the body of this node are
        not included, because this body has a statement of its own.
    """
    if type(node) in _CALLS and node.dyn_args is not None:
        node.dyn_args = _apply_filter(node.dyn_args, "list")
    total = int(type(node) not in _UNCOUNTED)
    if type(node) not in _BODIES:
        total += _PRINTED * len(node.nodes) if type(node) is nodes.Output else 0
        return total + sum(map(insert_step_counters, node.iter_child_nodes()))
    steps = _STEPS * (_BODY + sum(map(insert_step_counters, node.body)))
    counter = "count_steps" if any(map(_prints, node.body)) else "count_silent_steps"
    node.body.insert(0, nodes.ExprStmt(nodes.Keyword(counter, nodes.Const(steps)), lineno=node.lineno))
    if type(node) is nodes.For and node.test is not None:
        node.test = _apply_filter(node.test, COUNT_ITEM)
    return total + sum(map(insert_step_counters, node.iter_child_nodes(exclude=("body",))))


def _prints(node: nodes.Node) -> bool:
    """Returns True if a statement prints texts outside of inner loops. Inner loops count their own texts."""
    if type(node) is nodes.For:
        return any(map(_prints, node.else_))
    return type(node) is nodes.Output or any(map(_prints, node.iter_child_nodes()))


def _apply_filter(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class BoundedCodeGenerator(CodeGenerator):
    """Generator of the Python code of templates."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        # Each line has its own call of `writeline`: jinja counts the calls to find the line of an error.
        for line in _IMPORTS.splitlines():
            self.writeline(line)
        super().visit_Template(node, frame)

    def pull_dependencies(self, nodes: Iterable[nodes.Node]) -> None:
        # Jinja would search the tree for filters and tests. `_Lookups` writes their code without a search.
        self.filters = _Lookups("filters", self.environment.filters)
        self.tests = _Lookups("tests", self.environment.tests)

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        if self.environment.finalize is None and _is_unescaped(frame):
            # The texts of `a ~ b` are printed one after the other, so that no joined text is created.
            parts = [item.nodes if type(item) is nodes.Concat else [item] for item in node.nodes]
            node.nodes = [*chain.from_iterable(parts)]
        super().visit_Output(node, frame)

    def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _is_mark(node):
            self.write("next(")
        elif _is_unescaped(frame):
            self._printed = self.temporary_identifier()
            self.write(f"({self._printed} if type({self._printed} := {finalize.src or '('}")
        else:
            self.write("measure(")
            super()._output_child_pre(node, frame, finalize)

    def _output_child_post(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
        if _is_mark(node):
            self.write(")")
        elif _is_unescaped(frame):
            self.write(f")) is str else measure(str({self._printed})))")
        else:
            super()._output_child_post(node, frame, finalize)
            self.write(")")

    def visit_ExprStmt(self, node: nodes.ExprStmt, frame: Frame) -> None:
        self.newline(node)
        counter: Any = node.node
        self._write_call(f"{counter.key}(", frame, counter.value)

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, int):
            check_bits(node.value.bit_length())
        super().visit_Const(node, frame)

    def visit_Getattr(self, node: nodes.Getattr, frame: Frame) -> None:
        name, owner = node.attr, getattr(node.node, "name", None)
        if owner == "loop" and name in _LOOP_NAMES:
            value = self.temporary_identifier()
            self._write_call(f"({value}.{name} if type({value} := ", frame, node.node)
            self.write(f" is LoopContext else environment.getattr({value}, {name!r}))")
        elif name not in DICT_ATTRIBUTES:
            self._write_key(node.node, name, "environment.getattr", frame)
        else:
            super().visit_Getattr(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        key = getattr(node.arg, "value", None) if type(node.arg) is nodes.Const else None
        if type(node.arg) is nodes.Slice:
            self.write("count_slice(")
            super().visit_Getitem(node, frame)
            self.write(")")
        elif isinstance(key, str):
            self._write_key(node.node, key, "environment.getitem", frame)
        else:
            self.write("environment.getitem(")
            self.visit(node.node, frame)
            self.write(", ")
            self._write_operand("count_read(", node.arg, frame)
            self.write(")")

    def visit_Call(self, node: nodes.Call, frame: Frame, forward_caller: bool = False) -> None:
        if _is_method_call(node):
            self._write_method_call(node, node.node, frame)
        else:  # without the variables of loops and blocks, which no function of the environments reads
            self.write("environment.call(context, ")
            self.visit(node.node, frame)
            self.signature(node, frame, {"caller": "caller"} if forward_caller else None)
            self.write(")")

    def visit_Sub(self, node: nodes.BinExpr, frame: Frame) -> None:
        self._write_call("subtract(", frame, node.left, node.right)

    def visit_Add(self, node: nodes.BinExpr, frame: Frame) -> None:
        operands: list[nodes.Node] = []
        left: Any = node
        while type(left) is nodes.Add:
            operands.append(left.right)
            left = left.left
        self._write_call("add(", frame, left, *reversed(operands))

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        join = "markup_join" if frame.eval_ctx.autoescape else "str_join"
        if frame.eval_ctx.volatile:
            join = "(markup_join if context.eval_ctx.autoescape else str_join)"
        self._write_call(f"concatenate({join}, ", frame, *node.nodes)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        left = node.expr
        has_members = any(item.op in ("in", "notin") and not _is_small(item.expr) for item in node.ops)
        self.write("(")
        self._write_operand("count_read(" if has_members else "", left, frame)
        for item in node.ops:
            is_member = item.op in ("in", "notin")
            is_fast = _is_small(item.expr) or (_is_small(left) and not is_member)
            self.write(f" {operators[item.op]} ")
            counter = "count_member_test(" if is_member else "count_read("
            self._write_operand("" if is_fast else counter, item.expr, frame)
            left = item.expr
        self.write(")")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:
        self._write_container(super().visit_List, node, node.items, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:
        self._write_container(super().visit_Tuple, node, [] if node.ctx == "store" else node.items, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._write_container(super().visit_Dict, node, node.items, frame)

    def _write_call(self, start: str, frame: Frame, *values: nodes.Node) -> None:
        for index, value in enumerate(values):
            self.write(", " if index else start)
            self.visit(value, frame)
        self.write(")" if values else f"{start})")

    def _write_operand(self, counter: str, node: nodes.Node, frame: Frame) -> None:
        if counter and type(node) is not nodes.Const:
            self._write_call(counter, frame, node)
        else:
            self.visit(node, frame)

    def _write_container(self, write: Any, node: nodes.Node, items: list[Any], frame: Frame) -> None:
        is_constant = _is_constant(items)
        self.write("" if is_constant else "measure(")
        write(node, frame)
        self.write("" if is_constant else ")")

    def _write_key(self, node: nodes.Node, key: str, function: str, frame: Frame) -> None:
        """Writes code that reads a key of a dict, or calls `function` if the value is not a dict with this key."""
        value = self.temporary_identifier()
        self._write_call(f"({value}[{key!r}] if type({value} := ", frame, node)
        self.write(f" is dict and {key!r} in {value} else {function}({value}, {key!r}))")

    def _write_method_call(self, node: nodes.Call, method: Any, frame: Frame) -> None:
        """Writes code that calls a method of a text or dict directly, or any other method in the sandbox."""
        owner, name = self.temporary_identifier(), method.attr
        if name in FREE_METHODS and _is_constant(node.args):
            self._write_call(f"({owner}.{name}(", frame, *node.args)
        else:
            self.write(f"(call_text_method({owner}, {name!r}")
            self.signature(node, frame)
            self.write(")")
        self._write_call(f" if type({owner} := ", frame, method.node)
        self.write(f" is {FREE_METHODS.get(name, 'str')} else ")
        self.write(f"environment.call(context, environment.getattr({owner}, {name!r})")
        self.signature(node, frame)
        self.write("))")


class _Lookups(dict[str, str]):
    """Maps the name of a filter or test to the Python code that gets the filter or test from the environment."""

    def __init__(self, kind: str, functions: Mapping[str, Any]) -> None:
        self._kind = kind
        self._functions = functions

    def __missing__(self, name: str) -> str:
        if name in self._functions:
            return f"environment.{self._kind}[{name!r}]"
        error = f"No {self._kind[:-1]} named {name!r} found."
        return f"raise_error({error!r})"


def _is_mark(node: nodes.Expr) -> bool:
    """Returns True if the node prints the character at the start or at the end of a span."""
    return getattr(node, "name", "") in (SPAN_START, SPAN_END)


def _is_unescaped(frame: Frame) -> bool:
    """Returns True if printed values are not escaped."""
    return not (frame.eval_ctx.autoescape or frame.eval_ctx.volatile)


def _is_constant(items: list[Any]) -> bool:
    return all(type(item) is nodes.Const for item in items)


def _is_small(node: Any) -> bool:
    """Returns True if a node is a constant, or a list or tuple of constants."""
    if isinstance(node, nodes.List | nodes.Tuple):
        return _is_constant(node.items)
    return type(node) is nodes.Const


def _is_method_call(node: nodes.Call) -> bool:
    """Returns True for a call such as `text.strip("x")` with only constants and names, or `message.get("x")`.

    The generated code contains the arguments twice, so nested calls would double its size at each level.
    """
    method, has_values = node.node, all(isinstance(value, nodes.Const | nodes.Name) for value in node.args)
    if not has_values or node.kwargs or node.dyn_args or node.dyn_kwargs or type(method) is not nodes.Getattr:
        return False
    name = method.attr
    return name in TEXT_METHODS or (name in FREE_METHODS and _is_constant(node.args))
