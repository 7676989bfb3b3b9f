"""``taintwarden status``, ``top`` and ``history``: what policies do now, and what happened lately."""
