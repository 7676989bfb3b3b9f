"""``taintwarden doctor``: reads a cluster once, and reports what you have to act on.

Each check is a decorated function from a ``Context`` to findings, in a module of ``checks``. ``doctor_reading`` reads
the cluster, ``inventory`` groups pods and templates as they are read, ``context`` has the operator's own verdicts,
``examining`` runs the checks, ``findings_table`` shows what they find. Forbidden here: changing anything, and decisions
about pods other than by the engine.
"""
