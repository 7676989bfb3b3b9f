"""The command line. A module with a command has its flags and its help, and imports what does the work when it is used.

Forbidden here: deciding. Commands call ``rehearsal`` and the operator's packages, and print.
"""
