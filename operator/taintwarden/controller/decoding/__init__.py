"""Decoders of API objects into values of the engine, with bounds on the size of each object."""
