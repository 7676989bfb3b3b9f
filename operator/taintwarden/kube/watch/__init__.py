"""Kinds that are followed: lists, watches, and how current what they delivered is."""
