// Package kubetest reads Kubernetes objects in tests as strictly as the API
// server. They are decoded into the API's own Go types, with their names,
// labels and annotations held to the server's rules (decode.go), and a pod's
// parts to each other (pods.go).
//
// It refuses what the server only warns of: unknown fields, doubled keys, and
// annotations of clove's that package oci does not understand. It has no
// cluster: defaults, admission and scheduling are not tried.
package kubetest
