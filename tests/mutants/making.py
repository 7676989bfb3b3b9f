"""Mutants of a module: those of mutmut, and some kinds that it does not make."""

import random
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation import mutators
from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
from mutmut.mutation.pragma_handling import IgnoredCode


class Mutant(NamedTuple):
    """One change of a module, inside a function."""

    path: Path
    line: int
    """The line of the original at which it begins."""
    text: str
    """The whole module with it."""


def mutants(
    path: Path, most: int, seed: int, *, typed: bool = False, lines: Container[int] | None = None
) -> list[Mutant]:
    """Mutants of a module in the order of its lines: all, or ``most`` of them, chosen at random.

    ``typed``: only those that the type checker does not find. ``lines``: only those that change one of these.
    """
    text = path.read_text()
    visitor = _Visitor(_SHARP if typed else [*_SHARP, *_UNTYPED], IgnoredCode(set(), set(), set()))
    wrapper = MetadataWrapper(cst.parse_module(text))
    module, places = wrapper.visit(visitor), wrapper.resolve(PositionProvider)
    found = [one for one in visitor.mutations if isinstance(one.contained_by_top_level_function, cst.FunctionDef)]
    if lines is not None:
        found = [one for one in found if _is_in(places.get(one.original_node), lines)]
    if 0 < most < len(found):
        found = random.Random(f"{seed} {path.stem}").sample(found, most)
    made = {}
    for mutation in found:
        changed = deep_replace(module, mutation.original_node, mutation.mutated_node)
        assert isinstance(changed, cst.Module)
        made[changed.code] = Mutant(path, _changed_line(text, changed.code), changed.code)
    chosen = (mutant for mutant in made.values() if mutant.text != text and (lines is None or mutant.line in lines))
    return sorted(chosen, key=lambda mutant: mutant.line)


def _is_in(place: CodeRange | None, lines: Container[int]) -> bool:
    return place is None or any(line in lines for line in range(place.start.line, place.end.line + 1))


def _changed_line(before: str, after: str) -> int:
    lines = zip(before.splitlines(), after.splitlines(), strict=False)
    return next((number for number, (old, new) in enumerate(lines, 1) if old != new), 1)


class _Visitor(MutationVisitor):
    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        """mutmut leaves out what is decorated, because it wraps functions; here their code is replaced.

        Defaults of arguments are not part of that code.
        """
        if isinstance(node, cst.FunctionDef | cst.Param):
            return isinstance(node, cst.Param)
        return super()._skip_node_and_children(node)


def _nothing(node: cst.Expr | cst.Del) -> Iterator[cst.CSTNode]:
    """A call or a ``del`` whose effect is all that it has. That of a name says that an argument is not used."""
    if isinstance(node, cst.Del):
        targets = [one.value for one in node.target.elements] if isinstance(node.target, cst.Tuple) else [node.target]
        has_effect = not all(isinstance(one, cst.Name) for one in targets)
    else:
        has_effect = isinstance(node.value, cst.Call | cst.Await)
    if has_effect:
        yield cst.Pass()


def _negated(node: cst.If) -> Iterator[cst.CSTNode]:
    """Conditions that mutmut does not change, because they are a name or a call."""
    if isinstance(node.test, cst.Name | cst.Attribute | cst.Call | cst.NamedExpr):
        wrapped = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), wrapped))


def _dropped(node: cst.Assign | cst.AugAssign | cst.Return) -> Iterator[cst.CSTNode]:
    """A field or an item that is not written, a number that is not changed, a return that does not happen."""
    if _written(node) or (isinstance(node, cst.Return) and node.value is None):
        yield cst.Pass()


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _written(node: cst.CSTNode) -> str:
    """The field, item or counter that a statement writes, as text."""
    target = node.targets[0].target if isinstance(node, cst.Assign) else getattr(node, "target", None)
    if isinstance(target, cst.Attribute | cst.Subscript) or (target and isinstance(node, cst.AugAssign)):
        return _text(target)
    return ""


def _swapped(node: cst.IndentedBlock) -> Iterator[cst.CSTNode]:
    """Two adjacent statements in the other order, if one may see what the other does."""
    for at, lines in enumerate(pairwise(node.body)):
        if all(isinstance(line, cst.SimpleStatementLine) for line in lines):
            first, second = (cst.ensure_type(line, cst.SimpleStatementLine).body[0] for line in lines)
            if _sees(first, second) or _sees(second, first):
                yield node.with_changes(body=[*node.body[:at], *reversed(lines), *node.body[at + 2 :]])


def _sees(one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Return True if a statement reads what another one changes. A method of ``self`` reads and changes anything."""
    changed = _changed(other)
    return bool(changed and _changed(one)) and (changed == "self" or changed in _text(one))


def _changed(node: cst.CSTNode) -> str:
    """Name of the field, item or counter that a statement writes, or of the object that it calls."""
    if isinstance(node, cst.Expr | cst.Del) and any(_nothing(node)):
        call = node.value.expression if isinstance(node, cst.Expr) and isinstance(node.value, cst.Await) else node
        return _text(call).partition("(")[0].rpartition(".")[0]
    return _written(node)


def _operand(node: cst.BooleanOperation) -> Iterator[cst.CSTNode]:
    """One operand in place of both."""
    for one in (node.left, node.right):
        yield one.with_changes(lpar=[cst.LeftParen(), *one.lpar], rpar=[*one.rpar, cst.RightParen()])


def _opposite(node: cst.Name) -> Iterator[cst.CSTNode]:
    if other := {"max": "min", "min": "max", "any": "all", "all": "any"}.get(node.value):
        yield node.with_changes(value=other)


def _returned(node: cst.Return) -> Iterator[cst.CSTNode]:
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield node.with_changes(value=cst.Name("None"))


_FOUND_BY_TYPES = (
    mutators.operator_string,
    mutators.operator_assignment,
    mutators.operator_arg_removal,
    mutators.operator_dict_arguments,
    mutators.operator_augmented_assignment,
)
_SHARP: list[tuple[type[cst.CSTNode], Callable[[Any], Iterable[cst.CSTNode]]]] = [
    *(one for one in mutators.mutation_operators if one[1] not in _FOUND_BY_TYPES),
    (cst.Expr, _nothing),
    (cst.Del, _nothing),
    (cst.If, _negated),
    *((kind, _dropped) for kind in (cst.Return, cst.Assign, cst.AugAssign)),
    (cst.IndentedBlock, _swapped),
    (cst.BooleanOperation, _operand),
    (cst.Name, _opposite),
]
_UNTYPED: list[tuple[type[cst.CSTNode], Callable[[Any], Iterable[cst.CSTNode]]]] = [
    *(one for one in mutators.mutation_operators if one[1] in _FOUND_BY_TYPES[1:]),
    (cst.Return, _returned),
    # One change of a text is enough, case is not another.
    (cst.BaseString, lambda node: islice(mutators.operator_string(node), 1)),
]
