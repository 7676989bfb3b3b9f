"""Benchmarks: against the real API server and the built-in controller, and of the engine alone.

    python -m bench [wave] [start] [engine] [step] [--quick] [--repeat N] [--json FILE] [--data FOLDER]

=============  ======================================================================================
population     what the cluster holds: nodes and pods, the same ones every time
cluster        a control plane that is populated once, and opened again for every subject
bulk           thousands of requests as fast as the server takes them
subjects       how Taintwarden, kube-controller-manager and the bare client are started
waves          300 nodes are tainted at once: until the last pod is gone
start          a start with 50,000 pods: until it would act, and what it costs
engine         no cluster: shared verdicts, steps, deadlines, memory per pod; the longest step of the event loop
usage, table   CPU and memory of a process; medians, ratios and how they are shown
=============  ======================================================================================

Times are told and compared, never asserted: only ratios of one run mean anything on a shared machine.
"""
