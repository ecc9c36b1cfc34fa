//go:build root

package runtime

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/policies"
)

// The test binary launches runs, so libcontainer executes it again inside the new namespaces.
func init() {
	if len(os.Args) > 1 && os.Args[1] == ReexecArgument {
		Reexec()
	}
}

// Environment of a test binary that launches one run and dies at a step.
const (
	killAtVariable = "CLOVE_TEST_KILL_AT"
	dirVariable    = "CLOVE_TEST_DIR"
	initVariable   = "CLOVE_TEST_INIT"
	// sleeperVariable is a key of sleepers.
	sleeperVariable = "CLOVE_TEST_SLEEPER"
)

// sleepers are runs that launch in different ways.
var sleepers = map[string]func() agent.Spec{"plain": sleeper, "gated": gatedSleeper}

func TestMain(m *testing.M) {
	if at := os.Getenv(killAtVariable); at != "" {
		os.Exit(launchAndDie(at))
	}
	os.Exit(m.Run())
}

// launchAndDie is the main function of the process that dies. It returns only if the step was
// never reached.
func launchAndDie(at string) int {
	r := runtimeIn(os.Getenv(dirVariable), os.Getenv(initVariable))
	r.failAt = func(step string) error {
		if step == at {
			unix.Kill(unix.Getpid(), unix.SIGKILL)
		}
		return nil
	}
	record, err := r.Run(context.Background(), sleepers[os.Getenv(sleeperVariable)](), IO{Stderr: os.Stderr})
	if err != nil || record.ExitCode != 0 {
		os.Stderr.WriteString("the launch failed before its step\n")
	}
	return 1
}

// newRuntime returns a new installation. At the end of the test it checks that nothing of it
// is left.
func newRuntime(t *testing.T) *Runtime {
	t.Helper()
	testhost.Root(t)
	dir, err := os.MkdirTemp("", "clove") // short: paths have limits
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return runtimeIn(dir, testhost.Binary(t, "clove-init"))
}

func runtimeIn(dir, executable string) *Runtime {
	paths := Paths{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}
	for _, path := range []string{paths.layers(), paths.templates(), paths.Run} {
		if err := os.MkdirAll(path, runMode); err != nil {
			panic(err)
		}
	}
	this, err := paths.installation()
	if err != nil {
		panic(err)
	}
	return &Runtime{reaper: reaper{site{paths, this.ID}, executable}}
}

// sleeper is a run that would last longer than any test.
func sleeper() agent.Spec {
	spec := policies.Standard()
	spec.ID = agent.NewID()
	spec.Name = "sleeper-" + string(spec.ID)
	spec.Command = []string{"sleep", "1000"}
	spec.Env = []string{"PATH=/usr/bin:/bin"}
	return spec
}

// gatedSleeper is a sleeper with every part of a network that a launch can make. There
// is no listener at its name server's address, so no query is answered.
func gatedSleeper() agent.Spec {
	spec := sleeper()
	spec.Network = agent.NetworkAllowlist
	spec.Egress.Rules = []agent.EgressRule{{Target: "api.example.com", Source: "--allow"}}
	spec.Egress.DNS = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:9")}
	spec.Egress.HostPorts = []uint16{9}
	spec.Egress.Publish = []agent.PublishedPort{{Host: netip.MustParseAddrPort("127.0.0.1:0"), Port: 80}}
	return spec
}

// clean fails the test if anything of the installation is left.
func clean(t *testing.T, r *Runtime) {
	t.Helper()
	problems, err := r.Check()
	if err != nil || len(problems) != 0 {
		t.Errorf("check: %v, %v", problems, err)
	}
	for _, dir := range []string{r.paths.Run, r.paths.layers()} {
		if left := entriesOf(dir); len(left) != 0 {
			t.Errorf("%s holds %v", dir, left)
		}
	}
}
