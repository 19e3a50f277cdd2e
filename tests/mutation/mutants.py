"""Mutants: small changes of a module's source, found in its syntax tree."""

from __future__ import annotations

import ast
import copy
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

__all__ = ["Mutant", "find_mutants", "iter_modules", "iter_mutants"]

_Node = TypeVar("_Node", bound=ast.AST)
_Change: TypeAlias = "tuple[str, ast.expr | ast.stmt, ast.expr | ast.stmt]"
"""Name of the operator, node, and replacement."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """Source with one change.

    Attributes:
        path: Path of the module below the root, with slashes.
        line: First changed line, counted from 1.
        function: Qualified name of the function or class around the change; empty at the top of a module.
        operator: Name of the change's type.
        before: Source before the change.
        after: Source after the change.
        start: Index of the change in the module's bytes.
        end: Index after the change in the module's bytes.
    """

    path: str
    line: int
    function: str
    operator: str
    before: str
    after: str
    start: int
    end: int

    def apply(self, source: str) -> str:
        """Returns the source of the module with the change."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()

    def diff(self, source: str) -> str:
        """Returns the change as a unified diff without context."""
        lines = difflib.unified_diff(source.splitlines(), self.apply(source).splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def find_mutants(root: Path, folders: Sequence[str]) -> list[Mutant]:
    """Returns the mutants of all modules in folders or files below a root, in order of path and place."""
    paths = iter_modules(root, folders)
    return [mutant for path in paths for mutant in iter_mutants(path, (root / path).read_text("utf-8"))]


def iter_modules(root: Path, folders: Sequence[str]) -> Iterator[str]:
    """Yields the paths of all modules in folders or files below a root."""
    for folder in folders:
        for path in sorted(root.glob(folder)):
            for module in [path] if path.suffix == ".py" else sorted(path.glob("*.py")):
                yield module.relative_to(root).as_posix()


def iter_mutants(path: str, source: str) -> Iterator[Mutant]:
    """Yields the mutants of a module."""
    starts = _line_starts(source)
    data = source.encode()
    for function, (operator, node, replacement) in _Walker().walk(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(replacement)
        after = f"({text})" if isinstance(replacement, ast.expr) else text
        yield Mutant(path, node.lineno, function, operator, data[start:end].decode(), after, start, end)


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


class _Walker:
    """Walks a syntax tree. Annotations, decorators, error messages, lists of names and `assert_never` stay."""

    def __init__(self) -> None:
        self._scope: list[str] = []

    def walk(self, node: ast.AST) -> Iterator[tuple[str, _Change]]:
        """Yields each change below a node, with the qualified name of the function around it."""
        if isinstance(node, _SCOPES):
            self._scope.append(node.name)
        for change in _iter_changes(node):
            yield ".".join(self._scope), change
        for child in _iter_children(node):
            yield from self.walk(child)
        if isinstance(node, _SCOPES):
            self._scope.pop()


_TYPING: Final = ("cast", "TypeVar", "NewType")
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SKIPPED: Final = (ast.JoinedStr, ast.Raise, ast.Import, ast.ImportFrom, ast.arguments, ast.Assert)


def _iter_children(node: ast.AST) -> Iterator[ast.AST]:
    skipped = {
        "annotation",
        "returns",
        "decorator_list",
        "bases",
        "keywords" if isinstance(node, ast.ClassDef) else "",
    }
    if isinstance(node, ast.Assign) and any(_is_name(name, "__all__", "__slots__") for name in node.targets):
        return
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        return
    if isinstance(node, ast.If) and _is_name(node.test, "TYPE_CHECKING"):
        return
    if isinstance(node, ast.Call) and _is_name(node.func, *_TYPING):
        yield from node.args[1:]
        return
    for name, value in ast.iter_fields(node):
        if name in skipped:
            continue
        for child in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _SKIPPED):
                yield child


def _is_name(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Name) and node.id in names


# -- changes ------------------------------------------------------------------------------------------------------

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
}


def _iter_changes(node: ast.AST) -> Iterator[_Change]:
    match node:
        case ast.Compare():
            yield from _compare(node)
        case ast.BoolOp():
            op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", node, _replace(node, op=op)
            for index in range(len(node.values)):
                values = [*node.values[:index], *node.values[index + 1 :]]
                yield "operand", node, values[0] if len(values) == 1 else _replace(node, values=values)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, node.operand
        case ast.BinOp() if type(node.op) in _ARITHMETIC and not _is_text(node):
            yield "arithmetic", node, _replace(node, op=_ARITHMETIC[type(node.op)]())
        case ast.Constant():
            yield from _constant(node)
        case ast.If() | ast.While():
            yield "branch", node.test, _negate(node.test)
        case ast.IfExp():
            yield "branch", node, _replace(node, body=node.orelse, orelse=node.body)
        case ast.comprehension():
            for test in node.ifs:
                yield "filter", test, ast.Constant(True)
        case ast.Call():
            yield from _call(node)
        case ast.Expr(value=ast.Call(func=ast.Name("assert_never"))):
            pass  # the case is for type checkers
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()):
            yield "statement", node, ast.Pass() if not _yields(node) else ast.parse("yield from ()").body[0]
        case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete():
            yield "statement", node, ast.Pass()
        case ast.Return(value=ast.expr()) if not _is_false(node.value):
            yield "return", node, ast.Return(ast.Constant(None))
        case _:
            pass


def _compare(node: ast.Compare) -> Iterator[_Change]:
    for index, op in enumerate(node.ops):
        for other in _COMPARISONS[type(op)]:
            ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            yield "comparison", node, _replace(node, ops=ops)


def _constant(node: ast.Constant) -> Iterator[_Change]:
    if isinstance(node.value, bool):
        yield "constant", node, ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", node, ast.Constant(node.value + 1)
        yield "constant", node, ast.Constant(node.value - 1)


def _call(node: ast.Call) -> Iterator[_Change]:
    if _is_name(node.func, *_TYPING):
        return
    for index, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield "argument", node, _replace(node, keywords=[*node.keywords[:index], *node.keywords[index + 1 :]])


def _negate(test: ast.expr) -> ast.expr:
    return test.operand if isinstance(test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), test)


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or node.value is False)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.JoinedStr | ast.Constant) for side in (node.left, node.right)) and any(
        isinstance(getattr(side, "value", None), str) or isinstance(side, ast.JoinedStr)
        for side in (node.left, node.right)
    )


def _yields(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Yield | ast.YieldFrom)


def _replace(node: _Node, **fields: Any) -> _Node:
    result = copy.copy(node)
    for name, value in fields.items():
        setattr(result, name, value)
    return result
