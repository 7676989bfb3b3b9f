"""``python -m taintwarden``."""

from taintwarden.cli import main

main()
