"""Stores of policies, profiles and records of guards, which keep the last valid version of an invalid object."""
