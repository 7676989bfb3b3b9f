"""``taintwarden top``: a live table of nodes, pods, limits and Events.

`looking` reads the cluster, `state` keeps what a person selected, `drawing` makes a picture of both, `keyboard` reads
keys. Only `command` and `looking` know the cluster; a picture is a function of values.
"""
