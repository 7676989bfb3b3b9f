"""The checks of ``taintwarden doctor``: a module for each family, each a function of what was read."""
