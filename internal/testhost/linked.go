package testhost

import (
	"debug/buildinfo"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Licensed fails unless the text, of integration/package/licences, names each module linked
// into these programs, and Go and the C library.
func Licensed(t testing.TB, text string, programs ...string) {
	t.Helper()
	lines := strings.Split(text, "\n")
	named := func(name string) bool { return slices.Contains(lines, "==== "+name) }
	modules := 0
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		modules += len(info.Deps)
		for _, module := range info.Deps {
			if !named(module.Path + " " + module.Version) {
				t.Errorf("there is no licence of %s %s, which %s is linked with", module.Path, module.Version, filepath.Base(program))
			}
		}
		if !named("Go " + info.GoVersion) {
			t.Errorf("there is no licence of %s", info.GoVersion)
		}
	}
	if modules == 0 || !strings.Contains(text, "\n==== libc6-dev ") {
		t.Errorf("control: %d modules, and the licence of the C library: %v", modules, strings.Contains(text, "\n==== libc6-dev "))
	}
}
