"""The command line. A module with a command has its flags and its help, and imports what does the work when it is used.

Forbidden here: deciding. Commands call the packages below, and print.
"""

from taintwarden.cli.main import main

__all__ = ["main"]
