"""``taintwarden init`` and ``validate``: files before they are applied."""
