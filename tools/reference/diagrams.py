"""Drawing of the documents' Mermaid diagrams as SVG for the web site.

Git hosts draw Mermaid themselves. The site loads nothing from other servers and runs no large script, so it shows
pictures: ``make diagrams`` draws one for each diagram and colour mode into ``docs/pictures/diagrams``. Names contain
the hash of the source, and a test compares them.
"""

import hashlib
import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures" / "diagrams"
SCRIPT = ROOT / ".cache" / "mermaid" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
THEMES = {"light": "neutral", "dark": "dark"}
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DRAWN = re.compile(r'<pre id="drawn">(.*?)</pre>', re.DOTALL)
_PAGE = """<!doctype html><meta charset="utf-8"><body><div id="stage"></div><pre id="drawn"></pre>
<script>{script}</script><script>
const wanted = {wanted};
(async () => {{
  const found = {{}};
  for (const [name, [theme, source]] of Object.entries(wanted)) {{
    mermaid.initialize({{startOnLoad: false, theme, htmlLabels: false, flowchart: {{htmlLabels: false}},
      fontFamily: "system-ui, sans-serif"}});
    try {{
      found[name] = (await mermaid.render("d" + name.replace(/[^a-z0-9]/g, ""), source)).svg;
    }} catch (error) {{
      found[name] = "error: " + error;
    }}
  }}
  document.getElementById("drawn").textContent = JSON.stringify(found);
}})();
</script>"""


def name_of(source: str, mode: str) -> str:
    """Return the file name of a diagram."""
    return f"{hashlib.sha256(source.strip().encode()).hexdigest()[:12]}-{mode}.svg"


def sources() -> list[str]:
    """Return the diagrams of all pages, without duplicates."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return list(dict.fromkeys(text for page in pages for text in BLOCK.findall(page.read_text("utf-8"))))


def draw() -> dict[str, str]:
    """Return the SVG of each file, drawn by Mermaid in a headless Chromium."""
    wanted = {name_of(text, mode): (theme, text) for text in sources() for mode, theme in THEMES.items()}
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        script = SCRIPT.read_text("utf-8").replace("</script>", "<\\/script>")
        page.write_text(_PAGE.format(script=script, wanted=json.dumps(wanted).replace("</", "<\\/")), "utf-8")
        command = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=60000",
            "--dump-dom",
        ]
        shown = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, check=True).stdout  # noqa: S603
    drawn = _DRAWN.search(shown)
    found: dict[str, str] = json.loads(html.unescape(drawn[1])) if drawn and drawn[1] else {}
    answers = ((text, found.get(name, "not drawn")) for name, (_, text) in wanted.items())
    faults = [f"{text}{answer}" for text, answer in answers if "<svg" not in answer]
    if faults:
        raise RuntimeError("\n".join(faults))
    return found


def main() -> int:
    """Draw all diagrams, and remove those whose source is gone."""
    FOLDER.mkdir(exist_ok=True)
    found = draw()
    for path in FOLDER.glob("*.svg"):
        if path.name not in found:
            path.unlink()
    for name, svg in found.items():
        (FOLDER / name).write_text(f"{svg}\n", "utf-8")
    sys.stdout.write(f"drew {len(found)} diagrams in {FOLDER.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
