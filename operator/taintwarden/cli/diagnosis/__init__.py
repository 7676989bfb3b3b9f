"""``taintwarden doctor``: reads a cluster once, and says what in it is wrong or surprising.

``catalogue`` lists the checks; each is a function from a ``Context`` at the cluster to findings, in a module for its
family. ``sources`` names what can be read, ``reading`` and ``probing`` read it, ``census`` keeps pods and templates in
groups as they come, ``ground`` has the operator's own verdicts, ``diagnose`` runs the checks, ``table`` shows what they
found. Forbidden here: changing anything, and deciding about pods other than by the engine.
"""
