// Package integration tests clove end to end, as root, through its command
// line alone: what a user types, what an agent tries, what is left behind.
//
// Each attack comes from the probe (integration/probe), which also runs
// outside of the sandbox as the test's control.
package integration
