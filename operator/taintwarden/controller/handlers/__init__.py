"""What streams deliver becomes events of the machine."""
