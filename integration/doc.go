// Package integration tests clove end to end, as root, through its command
// line alone: what a user types, what an agent tries, what is left behind.
//
// Each attack comes from the probe (integration/probe), which also runs
// outside of the sandbox as the test's control, or from the test's own program
// run again (TestMain), which is then a Go program that knows of no proxy.
//
// Network tests have a world of their own (internet_root_test.go):
//
//	here: the host                      there: everything else
//	clove run, controls, capture        web, TLS, DNS, echo, SSH, SMTP, SQL
//	127.0.0.1, own addresses  ─ veth ─  public, private, metadata addresses
//
// Both are network namespaces of the test's process with no other way out. A
// packet socket on the host's side is the oracle: a test says which ends may
// have been sent to, and which names never.
package integration
