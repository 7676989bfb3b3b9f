"""The only package that talks to the cluster.

Forbidden here: deciding anything. Errors of the transport leave this package only as :mod:`~taintwarden.kube.errors`.
"""
