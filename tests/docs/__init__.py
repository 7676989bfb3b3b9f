"""README and docs/ against the code: what they show is valid, what they name exists, what they list is complete."""
