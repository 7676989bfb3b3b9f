"""Lists and watches, and whether what they delivered is up to date."""
