"""What mutants a module has: those of mutmut, and three kinds that it does not make."""

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import libcst as cst
from libcst.metadata import MetadataWrapper
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


def mutants(path: Path, most: int, seed: int, *, removals: bool = False) -> list[Mutant]:
    """Mutants of a module in the order of its lines: all, or with ``most`` so many of them chosen at random.

    ``removals``: only those that leave out a call or a ``del``.
    """
    text = path.read_text()
    visitor = _Visitor(_REMOVALS if removals else _OPERATORS, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(cst.parse_module(text)).visit(visitor)
    found = [one for one in visitor.mutations if isinstance(one.contained_by_top_level_function, cst.FunctionDef)]
    if 0 < most < len(found):
        found = random.Random(f"{seed} {path.stem}").sample(found, most)
    made = {}
    for mutation in found:
        changed = deep_replace(module, mutation.original_node, mutation.mutated_node)
        assert isinstance(changed, cst.Module)
        made[changed.code] = Mutant(path, _changed_line(text, changed.code), changed.code)
    return sorted((mutant for mutant in made.values() if mutant.text != text), key=lambda mutant: mutant.line)


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


def _returned(node: cst.Return) -> Iterator[cst.CSTNode]:
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield node.with_changes(value=cst.Name("None"))


_REMOVALS = [(cst.Expr, _nothing), (cst.Del, _nothing)]
_OPERATORS = [
    # One change of a text is enough, case is not another.
    *(one for one in mutators.mutation_operators if one[1] is not mutators.operator_string),
    (cst.BaseString, lambda node: islice(mutators.operator_string(node), 1)),
    *_REMOVALS,
    (cst.If, _negated),
    (cst.Return, _returned),
]
