package main

import (
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds the smallest of clove's programs.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "clove-init")
	command := exec.Command("go", "build", "-buildvcs=false", "-tags", "seccomp,urfave_cli_no_docs,netgo,osusergo,runc_nocriu", "-o", program, "clove.run/clove/cmd/clove-init")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// TestEachLinkedModuleHasALicence: for each module in the program's list, and for Go.
func TestEachLinkedModuleHasALicence(t *testing.T) {
	t.Parallel()
	program := build(t)
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run([]string{program}, &out); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(out.String(), "\n==== ")
	if len(info.Deps) == 0 || len(parts) != len(info.Deps)+2 || !strings.HasPrefix(parts[1], "Go "+info.GoVersion+"\n\nLICENSE:\n\nCopyright ") {
		t.Errorf("%d modules and\n%s", len(info.Deps), out.String())
	}
	for i, module := range info.Deps {
		if part := parts[i+2]; !strings.HasPrefix(part, module.Path+" "+module.Version+"\n\nLICENSE") {
			t.Errorf("%s: %.80q", module.Path, part)
		}
	}
}

// TestNothingIsLeftOut: a module that is not the program's, and one without a licence, are
// errors.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	linked := map[string]*part{}
	info, err := buildinfo.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	info.Deps[0].Version = "v0.0.1"
	if err := addModules(linked, info); err == nil || !strings.Contains(err.Error(), "build it anew") {
		t.Errorf("%v", err)
	}
	if err := sameModules(map[string]*part{}, info); err == nil {
		t.Error("a module that the tree has not is passed over")
	}
	p := &part{name: "example.com/x", version: "v1"}
	folder := t.TempDir()
	for _, name := range []string{"NOTICE", "license.go", "README.md"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.addFolder(folder, folder); err != nil || len(p.texts) != 1 {
		t.Fatalf("%v, %+v", err, p.texts)
	}
	if all, err := licensed(map[string]*part{p.name: p}); err == nil {
		t.Errorf("a notice is taken for a licence: %v", all)
	}
	if err := os.WriteFile(filepath.Join(folder, "LICENSE.BSD"), []byte("may"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.addFolder(folder, folder); err != nil || len(p.texts) != 2 {
		t.Errorf("%v, %+v", err, p.texts)
	}
	if all, err := licensed(map[string]*part{p.name: p}); err != nil || len(all) != 1 {
		t.Errorf("control: %v, %v", all, err)
	}
}

// TestEqualTextsArePrintedOnce: with the name of the part that they belong to.
func TestEqualTextsArePrintedOnce(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	write(&out, []*part{{"a", "v1", []text{{"LICENSE", []byte("may\n")}}}, {"b", "v2", []text{{"COPYING", []byte("\nmay")}, {"NOTICE", []byte("b's")}}}})
	const want = "==== a v1\n\nLICENSE:\n\nmay\n\n==== b v2\n\nCOPYING: the same text as a LICENSE\n\nNOTICE:\n\nb's\n\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q", out.String())
	}
}
