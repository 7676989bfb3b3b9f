"""Benchmarks: against the real API server and the built-in controller, and of the engine alone.

    python -m bench [wave] [sync] [queries] [watches] [engine] [spread] [webhook] [scheduling] [commands] [replay]
                    [endurance] [--quick] [--repeat N] [--json FILE] [--data FOLDER]

=============  ======================================================================================
population     what the cluster holds: nodes and pods, the same ones every time
cluster        a control plane that is populated once, and opened again for every subject
bulk           thousands of requests as fast as the server takes them
subjects       how Taintwarden, kube-controller-manager and the bare client are started
waves          300 nodes are tainted at once: until the last pod is gone
sync           a start with 50,000 pods: until it would act, and what it costs
queries        commands in a cluster of 50,000 pods
watches        what a watch costs its API server, by its encoding
engine         no cluster: shared verdicts, steps, deadlines, memory per pod
webhook        100 pods created a second: what webhooks add, also while nobody answers
spread         no cluster: how even a spread is left behind, and what choosing costs
replay         150,000 recorded pods, served by a process of their own: what the operator itself costs
usage, table   CPU and memory of a process; medians, ratios and how they are shown
=============  ======================================================================================

Times are told and compared, never asserted: only ratios of one run mean anything on a shared machine.
"""
