"""Events of a bench of a test, on one line of a table."""


def play(bench: object, happens: str) -> None:
    """Calls methods of a bench, such as ``leave a, want 3``: each with the words that follow it."""
    for step in filter(None, happens.split(", ")):
        what, *words = step.split()
        getattr(bench, what)(*words)
