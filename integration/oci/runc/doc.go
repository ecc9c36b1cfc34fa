// Package runc tests clove-oci beside runc, as root, through the command lines
// alone.
//
// A bundle is generated from a seed and a number: a base that works, and
// changes to it drawn from one table, valid ones and invalid ones. It is made
// twice, in folders of their own, and goes through the same life under both runtimes:
//
//	create ─ state ─ start ─ state ─ the process ends ─ state ─ delete ─ state
//
// The output of both and the view of their processes (the probe's command world) become
// lines, in which only names and numbers that must differ are the same word
// (normal_root_test.go). The lines have to be equal, but for the differences
// that differences_root_test.go lists with their reasons.
//
// Escapes that runc once allowed run against a version that still allows them,
// which is the control, and against clove-oci. The target of an attack is a file
// of the test's own.
package runc
