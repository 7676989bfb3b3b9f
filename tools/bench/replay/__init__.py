"""What the operator itself costs in a large cluster: recorded objects are served by a process of their own.

kube-apiserver and etcd need more of a machine for 150,000 pods than the operator does. Here both are replaced by a
server that has the answers to lists and the events of watches as bytes, so that little of the machine goes to it.

============  ======================================================================================
recording     a few objects of each kind, as kube-apiserver answers them in protobuf; made once
copies        many objects from few
wire          protobuf messages around objects: lists, events of watches
collection    the objects of one resource: pages of lists, versions, watches
scenario      what happens to the objects: updates, heartbeats, taints, evictions, pods that come and go
server        the process: replays Kubernetes' kinds; all else is a local cluster's
transfer      the process to compare a start with: it only transfers the lists
steps         the operator, with every step of its event loop timed
rig           server and operator together, and what the operator uses
cases         what is measured
============  ======================================================================================
"""
