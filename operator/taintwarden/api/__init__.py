"""What users write, checked and turned into the engine's values: policies, profiles, and tolerations in annotations.

The CRDs in ``crds/`` say the same as :mod:`taintwarden.api.types`, and a test holds the two together: the API server
refuses what it can, this package refuses it again (a policy may come from a file, or predate the CRD) with words that
say what to write instead.

Forbidden here: I/O, the cluster, the clock.
"""
