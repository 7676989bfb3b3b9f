"""Helpers for tests of layers above the client: an API server that answers by script, and real connections.

``scripted`` stands in for :class:`taintwarden.kube.http.client.Client`, so that no test of it touches a socket and the
event loop's clock can be faked.
"""
