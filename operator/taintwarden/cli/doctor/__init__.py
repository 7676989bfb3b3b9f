"""``taintwarden doctor``: reads a cluster once, and reports what in it is wrong or surprising.

``catalogue`` lists the checks; each is a function from a ``Context`` to findings, in a module of ``checks`` for its
family. ``doctor_reading`` and ``probing`` read the cluster, ``inventory`` groups pods and templates as they are read,
``context`` has the operator's own verdicts, ``diagnose`` runs the checks, ``findings_table`` shows what they find.
Forbidden here: changing anything, and deciding about pods other than by the engine.
"""
