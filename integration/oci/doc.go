// Package oci tries clove-oci as engines call it: the built program, real
// bundles, and what can be seen inside of a container and outside. Each limit and
// each wall is shown to be missing where the bundle does not ask for it.
//
// It holds root tests only.
package oci
