// Package ocitest has bundles and command lines with which tests try an OCI
// runtime as an engine would. The root file system is busybox, the command line
// has a root directory of its own, and the end leaves nothing behind.
//
//	r := ocitest.New(t, testhost.Binary(t, "clove-oci"))
//	bundle := r.Bundle("echo hello", func(s *specs.Spec) { … })
//	r.Must("run", "--bundle", bundle, "one")
//
// The runtime is a path, so that the same test can be asked of runc. Containers
// get cgroups below one that only these tests have, and residue in them at
// the end is removed and fails the test.
//
// It refuses to know what is right: that is each test's own.
package ocitest
