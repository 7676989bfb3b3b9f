"""Replays the scenarios of tests/vectors on a real API server, all at once, and records when each pod went.

catalogue: the scenarios and which of them a real server allows. stage: one scenario's own nodes and namespace and what
its steps do to them. pod_watch: who went when. timeline: the one loop that acts at the right moments.
"""
