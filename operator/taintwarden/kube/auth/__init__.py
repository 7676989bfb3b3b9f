"""Where the API server is, and as whom it is asked: kubeconfigs, credentials and proxies, as client-go reads them."""
