"""Runs the command line as ``python -m taintwarden_cli``."""

from taintwarden_cli.entry import main

main()
