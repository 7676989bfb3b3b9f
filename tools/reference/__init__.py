"""Pages made from what they describe: definitions, metrics, commands, values of the chart. ``make reference``.

The pages are in the repository, so that they can be read there; tests/docs/test_made_pages.py compares.
"""
