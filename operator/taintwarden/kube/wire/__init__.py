"""Objects as they arrive: the fields that are used, from protobuf and from JSON. Sends no requests."""
