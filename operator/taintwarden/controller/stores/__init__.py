"""Policies, profiles and the records of guards: what is stored, what of it is valid, and the last valid version."""
