"""Status of policies and profiles, and gauges, written from the reports of the machine."""
