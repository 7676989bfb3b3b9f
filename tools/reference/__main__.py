"""The command that writes all pages and files, and prints which of them changed."""

import sys

from reference.pages import ROOT, made_files


def main() -> None:
    """Write every file that is not up to date."""
    for name, text in made_files().items():
        path = ROOT / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            sys.stdout.write(f"wrote {name}\n")


if __name__ == "__main__":
    main()
