"""Texts of Events, log lines and statuses about what the machine reports: each fact has one function."""
