"""A cluster in simulated time: an API with faults on one side, the real machine and decoder on the other.

``Simulation`` holds the truth and moves time; one seed gives one history. No test here waits for anything.
"""

from simulated.cluster import Simulation
from simulated.policies import policy

__all__ = ["Simulation", "policy"]
