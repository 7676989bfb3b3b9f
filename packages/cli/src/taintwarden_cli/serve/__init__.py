"""Commands that serve: the operator, the webhooks and the scheduler extender; and ``webhook-trust``."""
