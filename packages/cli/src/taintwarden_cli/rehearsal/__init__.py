"""Shows what the operator would decide: its own machine, fed from a snapshot instead of streams. Changes nothing.

``session`` and ``manifests`` provide objects, ``reading`` and ``files`` make a ``Snapshot`` of them, ``rehearsal``
feeds it to a machine, ``evaluation`` reads the machine's view of one pod, ``simulation`` simulates time in an ``ideal``
cluster and returns a ``plan``. ``explain``, ``plan`` and ``doctor`` print the results. Forbidden here: decisions other
than by the engine, printing, and writing to the cluster.
"""
