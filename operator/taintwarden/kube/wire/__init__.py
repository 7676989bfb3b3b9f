"""Decoding of objects from protobuf and JSON, with only the fields that are used. Sends no requests."""
