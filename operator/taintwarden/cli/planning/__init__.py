"""``taintwarden plan``: the operator's own machine, fed with what a cluster has, and played forward on its own clock.

``changes`` says what is to be different, ``snapshot`` reads the cluster, ``world`` is the idealised cluster that the
machine acts on, ``play`` lets time pass, ``answer`` is what is told, ``table`` how. Forbidden here: deciding who goes,
and writing to the cluster.
"""
