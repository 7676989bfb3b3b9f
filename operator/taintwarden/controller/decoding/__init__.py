"""Objects of the API as values of the engine: what is read of pods and nodes, and how much of it counts."""
