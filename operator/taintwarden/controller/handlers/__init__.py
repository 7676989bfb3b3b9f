"""Handlers that turn the changes of streams into events of the machine."""
