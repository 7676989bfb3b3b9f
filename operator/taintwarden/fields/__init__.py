"""What the fields of an object may hold, and what is said of one that holds something else.

Here are the shapes of names, the bounds of numbers, and faults with a reason and a remedy. The engine's settings and
the API's structs are declared with them, so each field is declared once.
"""
