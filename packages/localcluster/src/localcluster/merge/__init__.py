"""The three ways to patch an object: merge patch, strategic merge patch, server-side apply.

Pure: values in, a new value out. Forbidden here: the store, HTTP, validation of what comes out.
"""
