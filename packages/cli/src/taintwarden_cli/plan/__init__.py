"""``taintwarden plan``: what follows from changed taints."""
