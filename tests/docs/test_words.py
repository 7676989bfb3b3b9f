"""Documents, definitions, manifests and code use plain words: the figures of speech listed here are not allowed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.pages import ROOT

WORDS = {
    r"(?:no|some|every|any)(?:body|one)": "the actor or object meant: no pod, you, every client",
    r"who(?:m|ever|se)?\b(?= (?:leaves?|goes|stays?|is evicted|may stay|compares?|has to leave))": "which pods",
    r"whoever|whomever": "the actor or object meant",
    r"heed(?:s|ed|ing)?": "respect, follow, update",
    r"(?:is|are|was|were|be|been|being) told": "reported",
    r"told (?:by|that|so|once|on|in|at|where|how|why)": "reported",
    r"lets? (?:it|them|him|her|pods?|all) go|lets? go(?: of)?": "release",
    r"(?:is|are|was|were|asked|called) again until": "retried until",
    r"ask(?:s|ed|ing)? again": "retry",
    r"ill\b(?= (?:zones?|nodes?))|(?:is|are|look|looks|all|seems?) ill": "unhealthy",
    r"leavers?": "evictees, or pods that are due",
    r"hands\b(?! over| on)": "effector",
    r"hand(?:s|ed)? (?:over|out|on|back)": "pass, return",
    r"doors?": "webhook, admission",
    r"rooms?": "package, layer; free resources",
    r"breakers?": "guard",
    r"(?:open|closed) guards?|guards? (?:is|are|was|has|that) ?(?:open|closed)(?:ed)?": "tripped, armed",
    r"guards? (?:that )?(?:opens?|opened|closes?)": "trips, is armed again",
    r"mend(?:s|ed|ing)?": "correct, repair",
    r"anew|afresh": "again",
    r"for ever": "indefinitely",
    r"under way": "in progress",
    r"on (?:its|their) way(?: out)?": "terminating, due",
    r"none of (?:its|their|the \w+') business": "ignored",
    r"lef?t?(?:ave)?s? \w+ alone|left alone": "not changed, not evicted",
    r"left in peace|leaves? \w+ in peace": "ignored",
    r"go(?:es)? on\b|went on\b": "continue",
    r"wants? (?:\w+ ){1,2}gone|want(?:s|ed)? (?:it|them|a pod|the pod|pods?) gone": "evicted",
    r"takes? (?:\w+ )?away|taken away": "remove",
    r"at night\b(?=[,.;]| when)": "the times meant",
    r"seen? (?:a wave |it |the wave )?whole": "complete",
    r"makes? no sense": "the fault: cannot be parsed, contradicts X",
    r"what(?:ever)? anybody|whatever happens": "in any case",
    r"does it no good|makes? it\b(?= before)": "the effect meant",
    r"companions?": "native toleration",
    r"vouch(?:es|ed)?": "self-signed",
    r"obey(?:s|ed)?": "followed, done",
    r"cannot be asked": "cannot be reached",
    r"again and again": "repeatedly",
    r"going again": "resume",
    r"sa(?:y|id) no": "decline",
    r"(?:only )?tell(?:s)? of": "show, report",
    r"(?:how|where) \w+ stands?": "the status",
}
"""Phrases that have a plain word, by regular expression without the word boundaries around it, each with that word."""


def compiled(phrase: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{phrase})\b".replace(" ", r"[ \0]+"), re.IGNORECASE)


COMPILED = {compiled(phrase): plain for phrase, plain in WORDS.items()}
ANY = compiled("|".join(WORDS))
"""One search for all is several times as fast."""
NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)|\b[\w-]+(?:[_/.][\w-]+)+|\b\w+-(?:\w+-)*\w+\b")
"""Code spans, link targets, paths and hyphenated identifiers: names are not sentences."""


def files() -> Iterator[Path]:
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted((ROOT / "crds").glob("*.yaml"))
    yield from sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file() and not path.is_symlink())
    yield from sorted((ROOT / "operator").rglob("*.py"))
    for package in ("cli", "demo", "devices", "placement"):
        yield from sorted((ROOT / "packages" / package).rglob("*.py"))


CHECKED = list(files())


def found(text: str) -> list[tuple[int, str, str]]:
    """The number of the line, the phrase and its replacement. A phrase may go over the end of a line."""
    plain = NAMES.sub(lambda name: "\n" * name[0].count("\n") + " ", text)
    joined = re.sub(r"\n[ #*>|]*(?=\w)", lambda end: "\0", plain)
    hits = []
    for pattern, replacement in COMPILED.items() if ANY.search(joined) else ():
        for match in pattern.finditer(joined):
            before = joined[: match.start()]
            hits.append((before.count("\n") + before.count("\0") + 1, match[0].replace("\0", " "), replacement))
    return sorted(hits)


def test_words_are_plain():
    hits = [
        f"{path.relative_to(ROOT)}:{line}: {phrase!r}: write {plain!r}"
        for path in CHECKED
        for line, phrase, plain in found(path.read_text("utf-8"))
    ]
    assert hits == [], "\n" + "\n".join(hits)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nwhat an open\n  guard holds", [(2, "open guard", "tripped, armed")]),
        ("evicts nobody.", [(1, "nobody", "the actor or object meant: no pod, you, every client")]),
        ("see `taintwarden_guard_open` and nobody.example.com", []),
    ],
)
def test_a_phrase_is_found_with_its_line(text, expected):
    assert found(text) == expected
