// Package suite names what tests/kind/conformance builds, so that go.mod pins all of it.
package suite

import _ "k8s.io/kubernetes/test/e2e" // its test binary is the suite
