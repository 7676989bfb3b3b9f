"""Faults on the real control plane, judged by the law that judges simulated histories.

    make chaos ARGS=--list
    make chaos ARGS="--fault api-killed --seed 7"

Two replicas of the operator, with the shipped role only, each behind its own proxy; nodes whose values change all the
time; workloads, budgets, a guard. While a fault lasts the API server writes down every change and every call: that log,
and the objects at the end, are all that `chaos.judge` reads. Nothing in it is of the product.
"""
