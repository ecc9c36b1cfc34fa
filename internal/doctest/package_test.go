package doctest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// providers are the packages of the programs that are not clove's own.
var providers = map[string]string{"/bin/kill": "procps"}

// TestThePackageDependsOnWhatItsUnitsExecute: a Debian without procps has no kill, and
// systemctl reload would fail there.
func TestThePackageDependsOnWhatItsUnitsExecute(t *testing.T) {
	t.Parallel()
	list := regexp.MustCompile(`(?m)^depends: \[(.*)\]$`).FindStringSubmatch(readTree(t, "integration/package/nfpm.yaml"))
	if list == nil {
		t.Fatal("nfpm.yaml has no list of depends")
	}
	depends := strings.Split(list[1], ", ")
	executed := 0
	for _, unit := range Files(t, Root(t), ".service") {
		if !strings.HasPrefix(unit, "deploy/node/units/") {
			continue // not the package's
		}
		for _, match := range regexp.MustCompile(`(?m)^Exec\w+=[-+!:@]*(\S+)`).FindAllStringSubmatch(readTree(t, unit), -1) {
			executed++
			if program := match[1]; !strings.Contains(program, "/clove") && !slices.Contains(depends, providers[program]) {
				t.Errorf("%s executes %s, and the package depends on %q", unit, program, depends)
			}
		}
	}
	if executed < 3 {
		t.Errorf("control: %d programs are executed", executed)
	}
}
