"""The only package that calls the API server: credentials (``auth``), HTTP (``http``), encodings (``wire``), lists and
watches (``watch``), and single calls (``calls``).

Forbidden here: making decisions. Transport errors leave this package only as :mod:`~taintwarden.kube.errors`.
"""
