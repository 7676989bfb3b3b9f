"""Taintwarden decides when pods must leave a node whose taints changed."""
