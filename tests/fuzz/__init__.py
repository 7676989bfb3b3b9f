"""Fuzzing of everything that parses what others write, with coverage by atheris: ``make fuzz``.

``targets`` says what is tried and what must hold, ``mutation`` how JSON is changed, ``__main__`` runs one target.
"""
