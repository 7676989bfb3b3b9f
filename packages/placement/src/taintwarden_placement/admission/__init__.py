"""What is wrong with an object before it acts, and what a pod needs beside it: for `validate`, `doctor`, webhooks.

Forbidden here: I/O, and deciding about pods that run.
"""
