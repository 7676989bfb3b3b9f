"""Reference pages made by ``make reference`` from definitions, metrics, commands and values of the chart.

The pages are in the repository, so that users can read them there. tests/docs/test_made_pages.py compares them.
"""
