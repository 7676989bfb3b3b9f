"""Whether a toleration tolerates a taint, and if not, why."""
