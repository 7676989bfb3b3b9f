"""``python -m taintwarden``."""

from taintwarden.entry import main

main()
