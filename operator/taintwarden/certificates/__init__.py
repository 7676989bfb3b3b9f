"""The certificates that the webhooks are served with: how they are made, read, and followed by the next one.

Pure: Secrets go in and out as bytes. Forbidden here: I/O, a clock of its own, and knowing about webhooks.
"""
