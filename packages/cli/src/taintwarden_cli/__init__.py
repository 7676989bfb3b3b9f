"""The command line. A command's module has its flags and help; the code behind it is imported when it is used.

Forbidden here: decisions. Commands call ``rehearsal`` and the operator's packages, and print.
"""
