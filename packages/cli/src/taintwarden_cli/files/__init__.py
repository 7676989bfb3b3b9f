"""``taintwarden init`` and ``validate``: manifests before they are applied."""
