// Package kubernetes writes the Kubernetes objects for one run: the Job that
// does in a cluster what `clove run` does here, and a ConfigMap for its files.
//
// Render (render.go) is a function from a Run to objects. A limit that the
// kubelet enforces becomes a field of the API (memory, CPUs, the writable layer,
// the user, the filter); one that only clove enforces becomes an annotation (pids, the
// deadline, the network), which package oci must understand, or there is no
// object. types.go has the few fields of the API that are written, because its
// own Go types would make every clove several megabytes larger; the tests decode
// all that comes out strictly into those types.
//
// The same run always gives the same text, and another run another name
// (names.go), so that applying it twice is one Job.
//
// The folder also has the manifests that install clove on a cluster.
//
// It refuses to write the value of a secret, and files that a ConfigMap cannot hold.
package kubernetes
