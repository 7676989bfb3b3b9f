"""The command that draws all pictures, or those of some scenes: ``python -m pictures [demo] [plan] ...``."""

import asyncio
import sys
from pathlib import Path

from pictures.scenes import SCENES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def main() -> None:
    """Draw the pictures one after the other, since each scene needs a quiet machine."""
    wanted = sys.argv[1:] or list(SCENES)
    for name in wanted:
        for picture, svg in asyncio.run(SCENES[name]()):
            (FOLDER / f"{picture}.svg").write_text(svg, "utf-8")
            sys.stdout.write(f"drew docs/pictures/{picture}.svg\n")


if __name__ == "__main__":
    main()
