"""The only package that talks to the cluster: who asks (``auth``), requests and answers (``http``), what objects look
like when they arrive (``wire``), how kinds are followed (``watch``), and what is asked or written besides (``calls``).

Forbidden here: deciding anything. Errors of the transport leave this package only as :mod:`~taintwarden.kube.errors`.
"""
