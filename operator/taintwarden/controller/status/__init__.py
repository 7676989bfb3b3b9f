"""What the machine reports becomes the status of policies and gauges."""
