package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAGuardsStateIsReadAsWritten(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	if _, err := ReadGuardState(directory); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	want := GuardState{Namespace: "4:4026531840", PID: 7, Start: 1 << 40}
	for range 2 { // the second replaces the first
		if err := WriteGuardState(directory, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := ReadGuardState(directory); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(directory, GuardStateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadGuardState(directory); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file: %v", err)
	}
	if err := WriteGuardState(filepath.Join(directory, "absent"), want); err == nil {
		t.Error("it was written nowhere")
	}
}

// TestAPolicyIsItsModeAndTargets: in any order, and from any source.
func TestAPolicyIsItsModeAndTargets(t *testing.T) {
	t.Parallel()
	allow, deny := EgressRule{Target: "example.com:443", Source: "one"}, EgressRule{Deny: true, Target: "example.com:443"}
	other := EgressRule{Target: "example.org:443"}
	want := Guard{Network: NetworkAllowlist, Rules: []EgressRule{allow, other}}
	again := EgressRule{Target: allow.Target, Source: "another"}
	same := Guard{PID: 7, Start: 42, Directory: "/elsewhere", Network: NetworkAllowlist, Rules: []EgressRule{other, again, allow}}
	if got := same.Policy(); got != want.Policy() || len(got) != 32 {
		t.Errorf("%s is not %s", got, want.Policy())
	}
	for _, g := range []Guard{
		{Network: NetworkPublic, Rules: want.Rules}, {Network: NetworkAllowlist, Rules: []EgressRule{allow}},
		{Network: NetworkAllowlist, Rules: []EgressRule{deny, other}}, {Network: NetworkNone},
	} {
		if g.Policy() == want.Policy() {
			t.Errorf("%+v is the same", g)
		}
	}
}

// TestGuardsGatesAreNobodysElse: their ids are neither an agent's nor those of an agent's
// gate.
func TestGuardsGatesAreNobodysElse(t *testing.T) {
	t.Parallel()
	last := Lease{IDRange: IDRanges - 1}.GateID()
	const lasting = 0x7FFD8000 // the first that outlasts its starter
	for _, pid := range []int{1, lasting - 0x7FFD0000 - IDRanges - 1, lasting - 0x7FFD0000 - IDRanges, 1 << 15, 1 << 22} {
		if id := GuardGateID(pid); id <= last || id >= lasting {
			t.Errorf("%d has %#x", pid, id)
		}
		if id := LastingID(pid, 3); id < lasting || id >= 0x7FFE0000 {
			t.Errorf("%d has %#x", pid, id)
		}
	}
}
