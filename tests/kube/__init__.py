"""Helpers for tests of the rooms above: an API server that answers by script, and a client on a real connection.

``scripted`` stands in for :class:`taintwarden.kube.http.client.Client`, so that no test of it touches a socket and the
event loop's clock can be faked.
"""
