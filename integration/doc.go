// Package integration tests clove end to end, as root, through its command
// line alone: what a user types, what an agent tries, what is left behind.
//
// Each attack comes from the probe (integration/probe), or from the test's own binary
// run again (TestMain), a Go program that uses no proxy. The probe also runs outside of
// the sandbox, as the test's control: an attack that fails there too proves nothing.
//
// Network tests have an isolated network of their own (internet_root_test.go):
//
//	here: the host                      there: everything else
//	clove run, controls, capture        web, TLS, DNS, echo, SSH, SMTP, SQL
//	127.0.0.1, own addresses  ─ veth ─  public, private, metadata addresses
//
// Both are network namespaces of the test's process with no other way out. A
// packet socket on the host's side records every packet: a test declares which
// addresses may have been sent to, and which names must never appear.
package integration
