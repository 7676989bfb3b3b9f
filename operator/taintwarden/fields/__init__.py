"""Names, bounds and faults of the fields of objects.

The settings of the engine and the structs of the API are declared with them, so that each field is declared once.
"""
