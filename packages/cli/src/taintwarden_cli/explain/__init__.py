"""``taintwarden explain``: why pods stay or leave, and when."""
