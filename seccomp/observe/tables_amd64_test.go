package observe

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/seccomp"
)

// Every name is a call of this machine that standard allows at least with some arguments:
// what it refuses is seen as refused.
func TestCallsExist(t *testing.T) {
	t.Parallel()
	all := Together(FileCalls(), ProgramCalls(), CapabilityCalls(nil))
	for _, w := range all {
		if _, exists := seccomp.Number(w.Call); !exists {
			t.Errorf("there is no call %s", w.Call)
		}
		if e, err := seccomp.Explain(seccomp.Standard, w.Call); err != nil || e.Verdict == seccomp.Refused {
			t.Errorf("%s: %+v, %v", w.Call, e, err)
		}
	}
	profile, err := seccomp.Profile(seccomp.Standard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seccomp.Compile(profile, 0x2c104e00, all...); err != nil {
		t.Error(err)
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	got := Together([]seccomp.Watch{{Call: "openat", Argument: 2, Bits: 1}, {Call: "bind"}}, []seccomp.Watch{{Call: "openat", Argument: 2, Bits: 4}, {Call: "bind", Bits: 1}})
	if want := []seccomp.Watch{{Call: "bind"}, {Call: "openat", Argument: 2, Bits: 5}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if held := CapabilityCalls([]string{"CAP_CHOWN", "CAP_SETUID", "CAP_SETGID"}); len(held) != 1 || held[0].Call != "bind" {
		t.Errorf("%+v", held)
	}
}

func TestIds(t *testing.T) {
	t.Parallel()
	c := caller{uids: [4]uint32{7, 7, 8, 7}, gids: [4]uint32{5, 5, 5, 5}, groups: []uint32{6}}
	for _, row := range []struct {
		call  string
		ids   []uint32
		needs bool
	}{
		{"setuid", []uint32{8}, false}, {"setuid", []uint32{9}, true}, {"setresuid", []uint32{kept, 7, kept}, false}, {"setgid", []uint32{6}, true},
		{"setgroups", nil, true}, {"chown", []uint32{7, 6}, false}, {"chown", []uint32{kept, kept}, false}, {"chown", []uint32{8, kept}, true}, {"chown", []uint32{kept, 9}, true},
	} {
		if got := capabilityCalls[row.call].needs(c, row.ids); got != row.needs {
			t.Errorf("%s %v: %t", row.call, row.ids, got)
		}
	}
	if me, err := callerOf(uint32(os.Getpid())); err != nil || me.uids[1] != uint32(os.Geteuid()) || me.gids[1] != uint32(os.Getegid()) {
		t.Errorf("%+v, %v", me, err)
	}
}

// On a mount that is writable nothing is refused. A read-only one takes root: see
// TestRefusedFilesAreSeen.
func TestWritableMountsRefuseNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_PATH, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := resolved{entry: -1, parent: fd, name: "new"}
	defer s.close()
	for c := range toMark + 1 {
		if s.onMount(c, true) || !s.onMount(c, false) {
			t.Errorf("change %d is on a read-only mount", c)
		}
	}
	if s.path() != filepath.Join(dir, "new") {
		t.Error(s.path())
	}
}
