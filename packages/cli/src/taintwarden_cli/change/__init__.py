"""Commands that change the cluster: ``pause``, ``resume``, ``guard`` and ``placement``."""
