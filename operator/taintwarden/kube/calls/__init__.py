"""Single calls: evictions, leader election, Events, status, labels. One module for each subject."""
