"""``python -m taintwarden_cli``."""

from taintwarden_cli.entry import main

main()
