"""The pictures of docs/pictures: what real commands draw on a terminal, against the cluster of the demo.

Nothing in them is written by hand. Names of pods and times differ from run to run, so the pictures are not compared.
"""
