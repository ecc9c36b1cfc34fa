package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnitsDifferFromThePackagesInPathsOnly: the group differs, too, because a node has none.
func TestUnitsDifferFromThePackagesInPathsOnly(t *testing.T) {
	want := map[string][]string{
		serviceUnit: {"ExecStart=/opt/clove/bin/cloved"},
		agentsUnit:  {"ExecStop=/opt/clove/bin/clove supervise --end 20s"},
		socketUnit:  {"SocketGroup=root"},
		sliceUnit:   nil,
	}
	for _, name := range unitNames {
		text, err := unitText(name, "/opt/clove/bin")
		if err != nil {
			t.Fatal(err)
		}
		body, marked := strings.CutPrefix(string(text), unitMark)
		packaged := strings.Split(readFile(t, filepath.Join("units", name)), "\n")
		lines := strings.Split(body, "\n")
		if !marked || len(lines) != len(packaged) {
			t.Errorf("%s: it begins with the mark: %t; %d lines of %d", name, marked, len(lines), len(packaged))
			continue
		}
		var different []string
		for i, line := range lines {
			if line != packaged[i] {
				different = append(different, line)
			}
			if strings.HasPrefix(line, "Exec") && strings.Contains(line, "/clove") && !strings.Contains(line, "/opt/clove/bin/") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if strings.Join(different, "\n") != strings.Join(want[name], "\n") {
			t.Errorf("%s: different are %q", name, different)
		}
	}
}

// TestThePackageHasTheSameUnits: there is only one text of each.
func TestThePackageHasTheSameUnits(t *testing.T) {
	files, err := os.ReadDir("units")
	if err != nil || len(files) != len(unitNames) {
		t.Errorf("%d files, %v", len(files), err)
	}
	packaged := readFile(t, "../../integration/package/nfpm.yaml")
	for _, name := range unitNames {
		if !strings.Contains(packaged, "{src: deploy/node/units/"+name+", dst: /lib/systemd/system/"+name+",") {
			t.Errorf("the package has another %s", name)
		}
	}
}

func TestClovedNeedsAllItsPrograms(t *testing.T) {
	for _, name := range clovedPrograms {
		p := newClovedPlace(t)
		before, path := p.look(), filepath.Join(p.cloved.Programs, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := p.installBoth(); err == nil || !strings.Contains(err.Error(), "there is no program "+path) || p.look() != before || len(p.orders) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, programs := range []string{"bin", "/opt/my clove", "/opt/%n", "/opt/\"", ""} {
		p := newClovedPlace(t)
		p.cloved.Programs = programs
		before := p.look()
		if _, err := p.installBoth(); err == nil || !strings.Contains(err.Error(), "as something else") || p.look() != before {
			t.Errorf("%q: %v", programs, err)
		}
	}
}
