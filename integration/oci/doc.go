// Package oci tests clove-oci as engines call it: the built program, real
// bundles, and what can be seen inside a container and outside. Each test of a limit or
// a wall has a control: without the bundle's request, the same attack succeeds.
//
// It holds root tests only.
package oci
