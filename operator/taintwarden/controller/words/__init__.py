"""What the machine reports becomes Events, log lines and sentences: each fact has one function."""
