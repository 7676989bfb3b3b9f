"""Links within the repository lead somewhere, to headings too. Others are not followed."""

import re

from docs.pages import BY_NAME, PAGES, ROOT, Page, anchor

LINKS = [(page, link) for page in PAGES for link in page.links]
LOCAL = [(page, link) for page, link in LINKS if not re.match(r"[a-z]+:", link)]


def target(page: Page, link: str) -> tuple[str, str]:
    """The file from the top of the repository, and the anchor."""
    path, _, fragment = link.partition("#")
    found = (page.path.parent / path).resolve() if path else page.path
    return found.relative_to(ROOT).as_posix(), fragment


def test_a_link_leads_somewhere():
    for page, link in LOCAL:
        path, fragment = target(page, link)
        assert (ROOT / path).exists(), page.name
        if fragment:
            assert fragment in BY_NAME[path].anchors, (page.name, link)


def test_other_links_are_to_public_standards_only():
    assert {link for _, link in LINKS} - {link for _, link in LOCAL} == {
        "https://keepachangelog.com/en/1.1.0/",
        "https://semver.org/spec/v2.0.0.html",
    }


def test_every_page_is_in_the_index():
    indexes = {"docs/README.md", "docs/runbooks/README.md"}
    listed = {target(page, link)[0] for page, link in LOCAL if page.name in indexes}
    about = {"docs/README.md", "CONTRIBUTING.md", "SECURITY.md"}
    assert {page.name for page in PAGES} - listed == about


def test_a_list_of_contents_is_complete():
    """Where a page begins with one: every heading of the second level, in order."""
    for page in PAGES:
        listed = [
            link[1:] for line in page.prose if line.startswith("- [") for link in re.findall(r"\((#[^)]+)\)", line)
        ]
        if listed:
            assert listed == [anchor(line[3:]) for line in page.prose if line.startswith("## ")]
