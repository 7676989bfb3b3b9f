"""The command line. One file a command; each only reads its arguments, calls the packages below and prints."""

from taintwarden.cli.main import main

__all__ = ["main"]
