"""The operator's own machine, taught from a snapshot instead of streams: what it would decide, without doing it.

``session`` and ``manifests`` are where objects come from, ``reading`` and ``files`` make a ``Snapshot`` of them,
``rehearsal`` teaches a machine from it, ``evaluation`` asks its view about one pod, ``play`` lets time pass in an
``ideal`` cluster and tells a ``plan``. ``explain``, ``plan`` and ``doctor`` print what is found here. Forbidden here:
deciding other than by the engine, printing, and writing to the cluster.
"""
