"""Address and credentials of the API server, as in client-go: kubeconfigs, service accounts, exec plugins, proxies."""
