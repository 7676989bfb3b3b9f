"""Single calls: evictions, the Lease, Events, status, annotations, access reviews. One module for each subject."""
