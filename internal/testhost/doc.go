// Package testhost describes the machine to tests, and checks that a test leaves
// nothing behind. It says which lane and which cgroup hierarchy the machine has,
// and whether a privilege or a tool is there.
//
// Every root test begins with
//
//	testhost.Root(t)
//	testhost.NoResidue(t, stateDir, runDir)
//
// Root refuses a host that cannot run the test: in CI (environment CI=true)
// that is a failure, elsewhere a skip that says what is missing. It also takes
// a lock that only one test process of a host holds, because tests that change
// the machine would see each other's mounts and cgroups as residue. The workers of
// the root lane (integration/worker.sh) have namespaces and a lock each.
//
// Sample says how much of what it repeats a test does in the lane that it is in.
//
// NoResidue lists the machine before the test and after it, when everything
// that the test registered with t.Cleanup later than NoResidue has run, and
// fails on what was added. Objects that the kernel removes with a delay (loop
// devices, namespaces) have a deadline. It does not fit tests that run
// in parallel in one process.
//
// The lanes name themselves in the environment: CLOVE_LANE=vm in the virtual
// machine, CLOVE_BIN_DIR for the folder of clove's own binaries.
//
// It refuses to change the machine, and production code must not import it.
package testhost
