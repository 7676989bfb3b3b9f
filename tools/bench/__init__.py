"""Benchmarks of Taintwarden beside the built-in controller on a real API server, and of the engine alone.

    python -m bench [wave] [latency] [start] [engine] [step] [--quick] [--repeat N] [--json FILE] [--data FOLDER]

=============  ======================================================================================
population     the nodes and pods of the cluster, the same in every run
cluster        a control plane that is populated once, and opened again for every subject
bulk           a client for thousands of requests
subjects       starts Taintwarden, kube-controller-manager and the bare client
waves          taints 300 nodes at once, and measures until the last pod is gone
latency        taints one node after the other, and measures until its only pod is evicted; with `heartbeats`
start          measures a start with 50,000 pods, until the subject could evict
engine         measures without a cluster: verdicts, steps, deadlines, memory per pod, the longest step
usage, table   CPU and memory of a process; medians, ratios and tables
=============  ======================================================================================

Times are reported, never asserted: on a shared machine only ratios within one run are meaningful.
"""
