"""Several operators on one API server: streams that fail, leases that change hands, stores that are restored.

=========== ==========================================================================================
``server``  objects with versions, the log that watches read, time
``stream``  how a replica learns of the objects of one kind, and what can happen to that
``writes``  what an operator has written, and how that ends
``replica`` one operator: a machine, its streams, its calls
``known``   what a replica was told, as plainly as possible: the oracle, which shares no code with the engine
``checks``  what no replica may ever do
``turmoil`` what happens by chance
=========== ==========================================================================================
"""

from simulated.fleet.turmoil import Turmoil, play

__all__ = ["Turmoil", "play"]
