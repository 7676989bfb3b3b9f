"""The alerts and the dashboard that are shipped, and a real Prometheus to try them with."""
