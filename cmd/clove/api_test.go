package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/contract"
	"clove.run/clove/api/methods"
)

func TestAPIList(t *testing.T) {
	status, stdout, stderr := newBench(t).clove("api", "list")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if status != 0 || stderr != "" || len(lines) != len(methods.All())+1 {
		t.Fatalf("%d, %q, %s", status, stderr, stdout)
	}
	for i, m := range methods.All() {
		if cells := strings.Fields(lines[i+1]); cells[0] != m.Name || cells[1] != string(m.Tier) || cells[2] != strings.Join(m.Access.Callers(), ",") || len(cells) < 4 {
			t.Errorf("%s", lines[i+1])
		}
	}
	_, stdout, _ = newBench(t).clove("api", "list", "--json")
	got, err := contract.Parse([]byte(stdout))
	if err != nil || len(contract.Diff(contract.Current(), got)) > 0 || got.Methods[0].Doc == "" {
		t.Errorf("%v, %s", err, stdout)
	}
}

// An older clove's list is compared with this one: additions leave the exit status at 0.
func TestAPIDiff(t *testing.T) {
	dir := t.TempDir()
	older := func(name string, change func(*contract.Contract)) string {
		c := contract.Current()
		change(&c)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	same := older("same", func(*contract.Contract) {})
	lacks := older("lacks", func(c *contract.Contract) { c.Methods = c.Methods[1:] })
	more := older("more", func(c *contract.Contract) {
		c.Methods = append(c.Methods, contract.Method{Name: "x.gone\x1b", Tier: api.Stable})
	})
	for _, row := range []struct {
		file, want string
		status     int
	}{
		{same, "nothing has changed\n", 0},
		{fmt.Sprint(api.Version), "nothing has changed\n", 0},
		{lacks, "addition daemon.info is new", 0},
		{more, `breaking stable x.gone\x1b is gone`, exitFailed},
	} {
		status, stdout, stderr := newBench(t).clove("api", "diff", row.file)
		if status != row.status || stderr != "" || !strings.Contains(strings.Join(strings.Fields(stdout), " "), strings.TrimSpace(row.want)) {
			t.Errorf("%s: %d, %q, %s", row.file, status, stderr, stdout)
		}
		var d contractChanges
		status, stdout, _ = newBench(t).clove("api", "diff", "--json", row.file)
		if unmarshal(t, stdout, &d); status != row.status || d.Breaking != (status != 0) || d.Changes == nil || d.From != api.Version {
			t.Errorf("%s: %d, %s", row.file, status, stdout)
		}
	}
	odd := filepath.Join(dir, "odd")
	if err := os.WriteFile(odd, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, says := range map[string]string{
		"api": "a word is missing", "api look": "does not take", "api list 1": "does not take", "api diff": "does not take", "api diff 0": "no contract version 0",
		"api diff " + odd: "is no contract", "api diff /nowhere": "cannot read",
	} {
		if status, stdout, stderr := newBench(t).clove(strings.Fields(line)...); status != exitFailed || stdout != "" || !strings.Contains(stderr, says) || !strings.Contains(stderr, "\nhint: ") {
			t.Errorf("%s: %d, %q, %q", line, status, stdout, stderr)
		}
	}
}
