package seccomp

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The complete profiles, one call a line: a newer moby/profiles that adds or removes a call
// shows here, and a person decides.
func TestProfilesAreAsReviewed(t *testing.T) {
	t.Parallel()
	for _, name := range filtered {
		golden := filepath.Join("testdata", name+".amd64.golden")
		got := text(mustProfile(t, name))
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from %s: look at the difference with go test -update and git diff", name, golden)
		}
	}
}

func text(p *specs.LinuxSeccomp) string {
	var b strings.Builder
	fmt.Fprintf(&b, "default: %s\narchitectures: %v\nflags: %v\n",
		phrase(decisionOf(p.DefaultAction, p.DefaultErrnoRet)), p.Architectures, p.Flags)
	for _, rule := range p.Syscalls {
		var conditions []string
		for _, arg := range rule.Args {
			conditions = append(conditions, comparison(arg))
		}
		for _, name := range rule.Names {
			fmt.Fprintf(&b, "%s %s %s\n", name, phrase(decisionOf(rule.Action, rule.ErrnoRet)), strings.Join(conditions, " and "))
		}
	}
	return b.String()
}

// comparison formats one condition. Arguments count from 0, as in the kernel's struct
// seccomp_data.
func comparison(arg specs.LinuxSeccompArg) string {
	if arg.Op != specs.OpMaskedEqual {
		panic(arg.Op) // no row of the built-in profiles has another
	}
	return fmt.Sprintf("(argument %d & %#x) == %#x", arg.Index, arg.Value, arg.ValueTwo)
}

// phrase formats a decision of a built-in profile.
func phrase(d Decision) string {
	if d.Allowed() {
		return "allowed"
	}
	return "refused with " + d.String()
}
