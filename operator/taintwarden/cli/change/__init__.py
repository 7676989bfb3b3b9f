"""Commands that change the cluster: ``pause``, ``resume``, ``guard``, ``placement`` and ``repair``."""
