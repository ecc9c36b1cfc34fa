// Package systemd holds the tests of clove as an operator has it: installed
// from its Debian package, started by systemd, with the directories that every
// host has. They install and purge packages, set the clock and reboot, so they
// stand in *_vm_test.go files with the build tag vm, which only the vm lane
// gives, and refuse to run anywhere else (`make vm RUN=TestSystemd`).
//
// A test that wants a reboot asks for it with again, and is called again after
// it; integration/vm/guest.sh says how.
package systemd
