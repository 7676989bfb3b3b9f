"""HTTPS servers for admission reviews and for the calls of schedulers. Forbidden here: decisions about objects."""
