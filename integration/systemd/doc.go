// Package systemd has the tests of clove as an operator uses it: installed
// from its Debian package, started by systemd, with the directories that every
// host has. They install and purge packages, set the clock and reboot. So they
// are in *_vm_test.go files with the build tag vm, which only the vm lane
// sets, and refuse to run anywhere else (`make vm RUN=TestSystemd`).
//
// A test that needs a reboot calls the function again, and is run again afterwards;
// integration/vm/guest.sh describes how.
package systemd
