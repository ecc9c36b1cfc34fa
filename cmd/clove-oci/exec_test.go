package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

func TestAUserIsReadStrictly(t *testing.T) {
	for text, want := range map[string]specs.User{
		"":             {UID: 1, GID: 2},
		"5":            {UID: 5, GID: 2},
		"5:6":          {UID: 5, GID: 6},
		"4294967295:0": {UID: 4294967295},
	} {
		user := specs.User{UID: 1, GID: 2}
		if err := setUser(&user, text, nil); err != nil || user.UID != want.UID || user.GID != want.GID {
			t.Errorf("%q: %+v, %v", text, user, err)
		}
	}
	for _, text := range []string{"root", "-1", "5:", ":6", "5:x", "4294967296", "5:6:7", " 5"} {
		if err := setUser(&specs.User{}, text, nil); err == nil || !strings.HasPrefix(err.Error(), "bad ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	user := specs.User{AdditionalGids: []uint32{1}}
	if err := setUser(&user, "", []int64{2, 3}); err != nil || !slices.Equal(user.AdditionalGids, []uint32{1, 2, 3}) {
		t.Errorf("%+v, %v", user, err)
	}
	if err := setUser(&user, "", []int64{-1}); err == nil || err.Error() != "additional-gids must be a positive number -1" {
		t.Error(err)
	}
}

func TestCapabilitiesAreAddedWithoutInheriting(t *testing.T) {
	for name, row := range map[string]struct {
		given   *specs.LinuxCapabilities
		ambient int
	}{
		"none":        {nil, 0},
		"some":        {&specs.LinuxCapabilities{Bounding: []string{"CAP_KILL"}}, 0},
		"inheritable": {&specs.LinuxCapabilities{Inheritable: []string{"CAP_CHOWN"}}, 1},
	} {
		process := &specs.Process{Capabilities: row.given}
		before := 0
		if row.given != nil {
			before = len(row.given.Inheritable)
		}
		addCapabilities(process, []string{"CAP_CHOWN"})
		all := process.Capabilities
		for _, set := range [][]string{all.Bounding, all.Effective, all.Permitted} {
			if !slices.Contains(set, "CAP_CHOWN") {
				t.Errorf("%s: %+v", name, all)
			}
		}
		if len(all.Ambient) != row.ambient || len(all.Inheritable) != before {
			t.Errorf("%s: %+v", name, all)
		}
	}
	process := &specs.Process{}
	if addCapabilities(process, nil); process.Capabilities != nil {
		t.Errorf("nothing was asked for: %+v", process.Capabilities)
	}
}

func TestCgroupsBelowTheContainers(t *testing.T) {
	for given, want := range map[string]map[string]string{
		"":                   {},
		"a/b":                {"": "a/b"},
		"pids:a":             {"pids": "a"},
		"pids,memory:a cpu:": {"pids": "a", "memory": "a", "cpu": ""},
	} {
		if got, err := parseCgroups(strings.Fields(given)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", given, got, err)
		}
	}
	for given, want := range map[string]string{
		"a b":           "missing <controller>: prefix",
		"pids:a b":      "missing <controller>: prefix",
		":a":            "empty <controller> prefix",
		"pids,:a":       "empty <controller> prefix",
		"pids:a pids:b": "controller pids specified multiple times",
	} {
		if _, err := parseCgroups(strings.Fields(given)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// TestAnExecThatFailsIsToldApart: its status is 255, so every lower one is the process's own.
// A wrong command line has status 1, as in runc.
func TestAnExecThatFailsIsToldApart(t *testing.T) {
	root := t.TempDir()
	if got := try(t, "--root", root, "exec", "none", "true"); got.status != 255 || got.logged != "exec failed: container does not exist" {
		t.Errorf("%+v", got)
	}
	if got := try(t, "--root", root, "exec"); got.status != 1 || got.logged != `clove-oci: "exec" requires a minimum of 1 argument(s)` {
		t.Errorf("%+v", got)
	}
}

// TestNothingJoinsWhatIsNotHeldYet: a container with rules from start on allows no exec before
// its start. One without such rules behaves as under runc.
func TestNothingJoinsWhatIsNotHeldYet(t *testing.T) {
	for name, row := range map[string]struct {
		annotations []string
		held        bool
	}{
		"nothing":          {nil, false},
		"a limit":          {[]string{oci.AnnotationPids, "5"}, false},
		"a network":        {[]string{oci.AnnotationNetworkMode, agent.NetworkNone}, true},
		"a deadline":       {[]string{oci.AnnotationTimeout, "1h"}, true},
		"a record":         {[]string{oci.AnnotationRecord, oci.RecordsDir + "/one.json"}, true},
		"a pod's deadline": {[]string{oci.AnnotationTimeout, "1h", "io.kubernetes.cri.container-type", "sandbox", "io.kubernetes.cri.sandbox-id", "one"}, false},
	} {
		state := container.State{ID: "one", Annotations: map[string]string{}}
		for i := 0; i < len(row.annotations); i += 2 {
			state.Annotations[row.annotations[i]] = row.annotations[i+1]
		}
		if err := checkExec(state, false); err != nil {
			t.Errorf("%s, started: %v", name, err)
		}
		// A paused container waits as well.
		for _, status := range []string{"created", "paused"} {
			state.Status = status
			if err := checkExec(state, true); row.held != (agent.KindOf(err) == agent.KindUnenforceable) || !row.held && err != nil {
				t.Errorf("%s, %s: %v", name, status, err)
			}
		}
	}
}
