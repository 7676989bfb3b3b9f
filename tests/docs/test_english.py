"""Docstrings, comments, documents and names of tests are in plain English: subject first, in the terms of Kubernetes.

``ENGLISH="tests/cli" pytest tests/docs/test_english.py`` lists the faults of one folder.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs import test_words
from docs.pages import ROOT

REVISED = tuple(
    os.environ.get(
        "ENGLISH",
        "docs README.md tools packages operator tests",
    ).split()
)
"""Files and folders that are checked."""

FIRST_WORDS = {
    "Of": "the subject: 'Maximum number of lanes tracked.'",
    "So": "the subject: 'Maximum number of lanes tracked.'",
    "What|Whatever": "a noun: 'Effect of a taint on pods ...'",
    "The same": "the subject that is equal: 'The test above with ...'",
    "As": "the subject: 'Follows metav1.Condition, so that ...'",
    "Whether": "'True if ...', or 'Return True if ...' for a function",
    "It": "the subject: 'The pod ...', or 'True if ...'",
    "No longer": "the subject: 'The node is no longer ...'",
    "Who|Whom|Whose|Whoever": "the actor: 'Clients that ...'",
    "How (?:many|much|few)": "'Number of ...' or 'Maximum number of ...'",
    "How (?:long|often|old|far|large|fast|high|deep)": "the quantity: 'Seconds until ...', 'Rate of ...'",
    "(?:By|For|From|After|Within) so": "the quantity: 'Seconds until ...'",
}
"""First words of docstrings, by regular expression, each with what to write instead."""

PHRASES = {
    "so (?:many|much|few|often|long)(?! as)(?![^.;:()]* that )": "the quantity: N pods, `seconds` seconds",
    "(?:stands?|stood) (?:in(?! for)|there|twice|before|below|beside|behind|between|written)": "is in, is listed in",
    "told(?! apart)": "reported, notified, called with",
    "hears?|heard": "receives, observes",
    "rests? (?:up)?on": "depends on",
    "(?:says?|said) of": "reports about; the status of",
    "(?:speaks?|spoken|spoke) of": "names",
    "ours?|we|us|(?:of|none) theirs": "of Taintwarden, the operator, of the owner",
    "becomes? of": "happens to; the outcome of",
    "knows? nothing(?: of)?": "does not know",
    "in vain": "without effect",
    "goes by": "uses, follows",
    "beside (?:those|nodes|types|its own)": "besides, in addition to",
    "certainly": "is known to",
    "what is known of": "the known state of",
    "takes? long": "takes a long time, is slow",
    "also (?:without|if)": "even without, even if",
    "(?:and|number,) since when": "the time since which",
}
"""Phrases in docstrings, comments and documents, by regular expression, each with what to write instead."""

BARE_VERBS = re.compile(
    r"^ *(?:async )?def (looks?|looked|came|comes?|stands?|stood|go|goes|went|tells?|told|hears?|heard)\(", re.MULTILINE
)
"""Names of public functions and methods that lack their object or subject."""


def _compiled(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{phrase})\b".replace(" ", r"[ \n#]+"), re.IGNORECASE)


FIRST = {re.compile(rf"(?:{words})\b"): plain for words, plain in FIRST_WORDS.items()}
COMPILED = {_compiled(phrase): plain for phrase, plain in PHRASES.items()}
ANY = _compiled("|".join(PHRASES))
"""One search for all phrases, which most texts do not have."""
PROSE = re.compile(
    r'''^ *r?"""(?P<docstring>[A-Za-z`][\s\S]*?)"""|(?:^ *|  )#(?P<comment>[ :].*(?:\n *#[ :].*)*)''', re.MULTILINE
)
TEST_NAME = re.compile(r"^ *(?:async )?def test_(\w+)", re.MULTILINE)
CODE = re.compile(r"```[\s\S]*?```|``[^`]*``|`[^`\n]*`|\]\([^)]*\)")


def _prose(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Each document, docstring and comment with its position in the text."""
    if path.endswith(".md"):
        yield 0, text
        return
    for found in PROSE.finditer(text):
        kind = found.lastgroup or ""
        yield found.start(kind), found[kind]


def _phrases(start: int, plain: str) -> Iterator[tuple[int, str, str]]:
    for phrase, why in COMPILED.items() if ANY.search(plain) else ():
        yield from ((start + found.start(), found[0], why) for found in phrase.finditer(plain))


def _words(start: int, prose: str) -> Iterator[tuple[int, str, str]]:
    for line, said, why in test_words.found(prose):
        yield start + sum(map(len, prose.splitlines(keepends=True)[: line - 1])), said, why


def faults(path: str, text: str) -> list[str]:
    """``path:line: text: write ...`` for each fault."""
    hits = [(name.start(1), name[1], "a verb with its object") for name in BARE_VERBS.finditer(text)]
    for start, prose in _prose(path, text):
        plain = CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), prose)
        hits += [(start, prose[:60].split("\n")[0], why) for first, why in FIRST.items() if first.match(prose)]
        hits += _phrases(start, plain)
        if path.startswith("tests/"):  # test_words.py reads the whole text of other files
            hits += _words(start, prose)
    for name in TEST_NAME.finditer(text):
        said = name[1].replace("_", " ")
        hits += [*_phrases(name.start(1), said), *_words(name.start(1), said)]
    return [f"{path}:{text.count(chr(10), 0, at) + 1}: {said!r}: write {why}" for at, said, why in sorted(hits)]


def files(name: str) -> list[Path]:
    """The Python files and documents of a folder, or the one file of that name."""
    found = sorted((ROOT / name).rglob("*")) or [ROOT / name]
    return [path for path in found if path.suffix in (".py", ".md")]


def test_text_is_plain_english():
    checked = [path for name in REVISED for path in files(name)]
    found = [fault for path in checked for fault in faults(str(path.relative_to(ROOT)), path.read_text("utf-8"))]
    assert found == [], "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('def f():\n    """Whether it ends."""\n', ["a.py:2: 'Whether it ends.'"]),
        ('x = 1\n"""Seconds for which a call\nis heard."""\n', ["a.py:3: 'heard'"]),
        ("x = 1  # it stands\n# there\n", ["a.py:1: 'stands\\n# there'"]),
        ("# it stands there\n", ["a.py:1: 'stands there'"]),
        ("async def look(self):\n", ["a.py:1: 'look'"]),
        ("def test_pod_leaves_anew():\n", ["a.py:1: 'anew'"]),
        ('"""Told ``told``, with so many pods that none fits."""\n', ["a.py:1: 'Told'"]),
    ],
)
def test_a_fault_has_its_line_and_text(text, expected):
    assert [fault.rsplit(": write ", 1)[0] for fault in faults("a.py", text)] == expected
