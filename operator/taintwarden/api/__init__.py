"""Objects and annotations that users write, checked and converted into values of the engine.

A test compares the CRDs in ``crds/`` with :mod:`taintwarden.api.types`. The API server rejects what it can. This
package rejects it again, since a policy may come from a file or predate the CRD, with a message that names the remedy.

Forbidden here: I/O, the cluster, the clock.
"""
