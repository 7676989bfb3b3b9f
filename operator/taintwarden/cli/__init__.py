"""The command line. One file a command; each only reads its arguments, calls the rooms below and prints."""

from taintwarden.cli.main import main

__all__ = ["main"]
