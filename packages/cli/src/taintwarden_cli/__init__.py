"""The command line. A command's module has its flags and help, and imports the code that carries it out on use.

Forbidden here: decisions. Commands call ``rehearsal`` and the operator's packages, and print.
"""
