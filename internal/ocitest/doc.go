// Package ocitest is what tests need to try an OCI runtime as an engine would: a
// bundle whose root file system is busybox, the command line with a root
// directory of its own, and a clean end.
//
//	r := ocitest.New(t, testhost.Binary(t, "clove-oci"))
//	bundle := r.Bundle("echo hello", func(s *specs.Spec) { … })
//	r.Must("run", "--bundle", bundle, "one")
//
// The runtime is a path, so that the same test can be asked of runc. Containers
// get cgroups below one that only these tests have, and what is left of them in
// the end is removed and fails the test.
//
// It refuses to know what is right: that is each test's own.
package ocitest
