"""Carries out ``validate``. The structs are what ``-o json`` prints, and are stable between releases."""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import click
import msgspec

from taintwarden.api.profiles import parse_profile
from taintwarden.api.types import GROUP, POLICY_KIND, PROFILE_KIND, PUBLISHER_KIND
from taintwarden.controller.words.wording import several
from taintwarden.engine.model import Profile
from taintwarden.fields.field_errors import FieldError, InvalidObject, as_written, duplicate
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import printable
from taintwarden_cli.rehearsal.manifests import BadInput, Document, read_documents
from taintwarden_placement.admission.annotated_objects import ObjectRole, check_object, check_templates, role_of
from taintwarden_placement.admission.checking import Faults, FaultSeverity

SUFFIXES = (".json", ".yaml", ".yml")


class FileFinding(msgspec.Struct, rename="camel"):
    """One fault. ``message`` joins path, value, reason and remedy."""

    file: str
    line: int
    document: int
    item: int | None
    kind: str
    name: str
    severity: FaultSeverity
    path: str
    message: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        item = "" if self.item is None else f" item {self.item}"
        place = f"{self.file}:{self.line}: document {self.document}{item}"
        return f"{place}: {self.kind or 'object'}/{self.name}: {self.severity}: {self.message}"


class Unreadable(msgspec.Struct):
    """A file that cannot be checked at all."""

    file: str
    reason: str


class FileReport(msgspec.Struct, rename="camel"):
    """The findings in all files."""

    files: int = 0
    objects: int = 0
    checked: int = 0
    """Policies, profiles, pods and pod templates."""
    ignored: dict[str, int] = {}
    errors: int = 0
    warnings: int = 0
    findings: list[FileFinding] = []
    unreadable: list[Unreadable] = []


def check_files(names: Iterable[str], *, recursive: bool = False) -> FileReport:
    """Read and check files, and the files of folders; ``-`` is standard input. Pods may need profiles of other files.

    ``recursive`` is True to include the folders in a folder.
    """
    report, documents = FileReport(), []
    for name in names:
        for file in _files(name, report, recursive=recursive):
            report.files += 1
            try:
                found = read_documents(file)
                documents += found
                if not found:
                    raise BadInput(f"{printable(file)}: has no object")
            except BadInput as error:
                report.unreadable.append(Unreadable(printable(file), str(error)))
    report.objects = len(documents)
    profiles = list(_profiles(documents))
    ignored, first = Counter[str](), dict[tuple[str, ...], Document]()
    for document in documents:
        for severity, fault in (*_check(document, profiles, report, ignored), *_check_duplicate(document, first)):
            report.findings.append(_finding(document, severity, fault))
    report.ignored = dict(sorted(ignored.items()))
    report.errors = sum(one.severity is FaultSeverity.ERROR for one in report.findings)
    report.warnings = len(report.findings) - report.errors
    return report


def _files(name: str, report: FileReport, *, recursive: bool) -> Iterator[str]:
    """The file itself, or the files of a folder, as kubectl chooses them. A folder that cannot be read is reported."""
    if name == "-" or not os.path.isdir(name):  # noqa: PTH112 - Path.is_dir raises OSError
        yield name
        return
    paths, errors = list[Path](), list[OSError]()
    for folder, folders, files in os.walk(name, onerror=errors.append):
        paths += [Path(folder, file) for file in files]
        if not recursive:
            folders.clear()
    found = sorted(str(path) for path in paths if path.suffix in SUFFIXES and path.is_file())
    for error in errors:
        shown = printable(str(Path(error.filename)))
        report.unreadable.append(Unreadable(shown, f"{shown}: cannot be read: {error.strerror}"))
    if not (found or errors):
        sentence = f"{printable(name)}: is a folder without {', '.join(SUFFIXES)} files"
        report.unreadable.append(Unreadable(printable(name), sentence))
    yield from found


def _profiles(documents: Iterable[Document]) -> Iterator[Profile]:
    for document in documents:
        if document.kind == PROFILE_KIND:
            try:
                yield parse_profile(document.content)
            except InvalidObject:
                continue  # ``_check`` reports it


def _check(document: Document, profiles: list[Profile], report: FileReport, ignored: Counter[str]) -> Faults:
    obj, group, kind = document.content, document.group, document.kind
    if role_of(group, kind) is ObjectRole.OTHER:
        found = [] if kind == "CustomResourceDefinition" else [*check_templates(obj, profiles)]
        report.checked += len(found)
        if not found:
            ignored[f"{group}/{kind}" if group else kind] += 1
        yield from chain.from_iterable(faults for _, faults in found)
        return
    report.checked += 1
    yield from check_object(obj, group, kind, profiles)


def _check_duplicate(document: Document, first: dict[tuple[str, ...], Document]) -> Faults:
    """Report a policy or profile whose name an earlier one of its file has: only one of them is stored."""
    if document.kind in (POLICY_KIND, PROFILE_KIND) and (name := _text(document.content, "name")):
        known = first.setdefault((document.file, document.kind, _text(document.content, "namespace"), name), document)
        if known is not document:
            reason = f"is the name of another {document.kind} of the file, at {known.location}"
            yield FaultSeverity.ERROR, duplicate("metadata.name", name, reason, "rename one, since only one is stored")


def _text(content: Mapping[str, Any], field: str) -> str:
    meta = content.get("metadata")
    value = meta.get(field) if isinstance(meta, Mapping) else None
    return value if isinstance(value, str) else ""


def _finding(document: Document, severity: FaultSeverity, fault: FieldError) -> FileFinding:
    line, text = document.position(fault.path)
    if text and fault.value is not msgspec.UNSET:
        fault = as_written(fault, text)
    place = document.file, line, document.number, document.item, document.kind, document.name
    return FileFinding(*place, severity, fault.path, str(fault), fault.reason, fault.remedy)


FINE, FAULTY, UNREADABLE = 0, 1, 2
_PUBLISHERS = f"{GROUP}/{PUBLISHER_KIND}"


def validate(files: tuple[str, ...], named: tuple[str, ...], recursive: bool, output: str) -> None:
    """Carry out ``taintwarden validate``."""
    if not (files or named):
        raise click.UsageError("name a file or a folder; - is standard input")
    report = check_files((*files, *named), recursive=recursive)
    for unreadable in report.unreadable if output == "table" else ():
        click.echo(f"taintwarden: {printable(unreadable.reason)}", err=True)
    write_answer(report, output, lambda: "\n".join([*map(printable, map(str, report.findings)), _summary(report)]))
    sys.exit(UNREADABLE if report.unreadable else FAULTY if report.errors else FINE)


def _summary(report: FileReport) -> str:
    ignored = ", ".join(f"{kind} {count}" for kind, count in report.ignored.items())
    parts = [
        f"{several(report.files, 'file')}: {several(report.checked, 'object')} checked",
        f"ignored: {printable(ignored)}" if ignored else "",
        "only the API server checks TaintPublishers" if _PUBLISHERS in report.ignored else "",
        f"{several(len(report.unreadable), 'file')} not readable" if report.unreadable else "",
        f"{several(report.errors, 'error')}, {several(report.warnings, 'warning')}",
    ]
    return "; ".join(filter(None, parts))
