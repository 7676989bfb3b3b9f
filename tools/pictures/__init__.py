"""The pictures in docs/pictures: terminal output of real commands, with the cluster of the demo.

No text in them is written by hand. Names of pods and times differ between runs, so no test compares the pictures.
"""
