"""Commands that serve: the operator, the webhooks and the scheduler extender, and the trust in the webhooks."""
