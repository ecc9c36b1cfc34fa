package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/opencontainers/runtime-spec/specs-go/features"

	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what it was; if it should differ, run the tests with -update\n%s", path, got)
	}
}

var shown = container.State{
	OCIVersion: "1.3.0", ID: "one", Pid: 42, Status: "running", Bundle: "/bundles/one", Rootfs: "/bundles/one/rootfs",
	Created:     time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC),
	Annotations: map[string]string{oci.AnnotationPids: "64", "org.example": "<a>"},
}

func TestStateIsPrintedAsRuncDoes(t *testing.T) {
	var out strings.Builder
	if err := writeState(&out, shown); err != nil {
		t.Fatal(err)
	}
	golden(t, "state.json", out.String())
	var state specs.State
	if err := json.Unmarshal([]byte(out.String()), &state); err != nil || state.Status != specs.StateRunning || state.Pid != 42 {
		t.Errorf("the specification reads it as %+v, %v", state, err)
	}
}

func TestListHasThreeForms(t *testing.T) {
	owned := shown
	owned.Owner = "root"
	var all bytes.Buffer
	for _, form := range []struct {
		format string
		quiet  bool
	}{{"table", false}, {"json", false}, {"table", true}} {
		if err := writeList(&all, []container.State{owned}, form.format, form.quiet); err != nil {
			t.Fatal(err)
		}
		if err := writeList(&all, nil, form.format, form.quiet); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "list.txt", all.String())
}

func TestOnlyTheDefaultRootMayBeMissing(t *testing.T) {
	root := filepath.Join(t.TempDir(), "none")
	if got := try(t, "--root", root, "list"); got.status != 1 || got.logged != "open "+root+": no such file or directory" {
		t.Errorf("%+v", got)
	}
	if got := try(t, "--root", t.TempDir(), "list", "--format", "json"); got.status != 0 || got.out != "null\n" {
		t.Errorf("%+v", got)
	}
}

// TestFeaturesTellWhatIsThere: the golden file leaves out what depends on the machine.
func TestFeaturesTellWhatIsThere(t *testing.T) {
	got := try(t, "features")
	var f features.Features
	if err := json.Unmarshal([]byte(got.out), &f); err != nil || got.status != 0 {
		t.Fatalf("%v, %+v", err, got)
	}
	f.Linux.Capabilities = nil // depends on the kernel
	f.Linux.Seccomp.SupportedFlags, f.Linux.Seccomp.Archs, f.Linux.Seccomp.Actions = nil, nil, nil
	delete(f.Annotations, "io.github.seccomp.libseccomp.version")
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "features.json", string(text)+"\n")
}

func TestSpecWritesWhatCreateReads(t *testing.T) {
	bundle := t.TempDir()
	t.Chdir(bundle)
	if got := try(t, "spec", "--bundle", bundle); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if _, err := loadBundle(bundle); err != nil {
		t.Error(err)
	}
	if got := try(t, "spec"); got.logged != "file config.json exists: remove it first" {
		t.Errorf("%+v", got)
	}
}

// TestSpecForARootlessContainer: root inside is the caller, and objects that only root may
// create are left out.
func TestSpecForARootlessContainer(t *testing.T) {
	for _, rootless := range []bool{true, false} {
		args := []string{"spec", "--bundle", t.TempDir()}
		t.Chdir(args[2]) // spec writes there
		if rootless {
			args = append(args, "--rootless")
		}
		if got := try(t, args...); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		text, err := os.ReadFile(filepath.Join(args[2], "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var spec specs.Spec
		if err := json.Unmarshal(text, &spec); err != nil {
			t.Fatal(err)
		}
		made := map[specs.LinuxNamespaceType]bool{}
		for _, namespace := range spec.Linux.Namespaces {
			made[namespace.Type] = true
		}
		if made[specs.UserNamespace] != rootless || made[specs.NetworkNamespace] == rootless || !made[specs.PIDNamespace] {
			t.Errorf("rootless %v: namespaces %v", rootless, made)
		}
		mapped := len(spec.Linux.UIDMappings) == 1 && spec.Linux.UIDMappings[0] == specs.LinuxIDMapping{HostID: uint32(os.Geteuid()), Size: 1}
		if mapped != rootless || (spec.Linux.Resources == nil) != rootless {
			t.Errorf("rootless %v: %+v, %+v", rootless, spec.Linux.UIDMappings, spec.Linux.Resources)
		}
	}
}
