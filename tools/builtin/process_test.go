package builtin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
	"clove.run/clove/tools"
)

func execute(t *testing.T, ctx context.Context, most int, a ExecArguments) (r ExecResult, text string, err error) {
	t.Helper()
	text, err = (&Box{Dir: t.TempDir(), Most: most}).Exec(ctx, a)
	if err == nil {
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Errorf("%v: %.200s", err, text)
		}
	}
	return r, text, err
}

func TestExec(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r, _, err := execute(t, ctx, 1<<20, ExecArguments{Argv: []string{"sh", "-c", `cat; echo "$A|$B" >&2; pwd; exit 3`}, Env: map[string]string{"A": "1 2", "B": "$A"}, Stdin: "in\n", Cwd: "/usr"})
	if err != nil || r.ExitCode != 3 || r.Stdout != "in\n/usr\n" || r.Stderr != "1 2|$A\n" || r.TimedOut {
		t.Errorf("%+v, %v", r, err)
	}
	// There is no shell.
	r, _, err = execute(t, ctx, 1<<20, ExecArguments{Argv: []string{"echo", "$HOME", ";", "ls", "*"}})
	if err != nil || r.Stdout != "$HOME ; ls *\n" {
		t.Errorf("%+v, %v", r, err)
	}
	r, _, err = execute(t, ctx, 1<<20, ExecArguments{Argv: []string{"sleep", "60"}, Timeout: 1})
	if err != nil || !r.TimedOut || r.ExitCode != -1 || r.Duration > 30 {
		t.Errorf("%+v, %v", r, err)
	}
	r, text, err := execute(t, ctx, 10_000, ExecArguments{Argv: []string{"sh", "-c", `head -c 100000000 /dev/zero; printf end; printf '"\\' >&2`}})
	if err != nil || !r.StdoutTruncated || r.StderrTruncated || !strings.HasSuffix(r.Stdout, "end") || len(text) > 10_000 {
		t.Errorf("%d bytes, %.300q, %v", len(text), text[max(0, len(text)-300):], err)
	}
	for _, argv := range [][]string{nil, {""}, {"a\x00b"}, {"./x"}, {"nothing-of-this-name"}, {"/nothing"}} {
		if _, text, err := execute(t, ctx, 1<<20, ExecArguments{Argv: argv}); err == nil {
			t.Errorf("%q runs: %s", argv, text)
		}
	}
	if _, _, err := execute(t, ctx, 1<<20, ExecArguments{Argv: []string{"true"}, Env: map[string]string{"A=B": "c"}}); err == nil {
		t.Error("a name of a variable has =")
	}
}

// The processes that a program leaves in its group are killed at its end, and at the end of a
// call. The control is a process that has left the group.
func TestTheGroupEndsWithItsCall(t *testing.T) {
	t.Parallel()
	testhost.Tool(t, "setsid")
	dir := t.TempDir()
	for name, row := range map[string]struct {
		script string
		lives  bool
		cancel bool
	}{
		"in the background": {`sleep 61 & echo $! >pid`, false, false},
		"control":           {`setsid sleep 61 </dev/null >/dev/null 2>&1 & echo $! >pid; sleep 0.2`, true, false},
		"cancelled":         {`sleep 61 & echo $! >pid; wait`, false, true},
		"timed out":         {`trap '' TERM; sleep 61 & echo $! >pid; wait; sleep 61`, false, false},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_ = os.Remove(filepath.Join(dir, "pid"))
		began := time.Now()
		if row.cancel {
			go func() {
				for _, err := os.Stat(filepath.Join(dir, "pid")); err != nil && time.Since(began) < time.Minute; _, err = os.Stat(filepath.Join(dir, "pid")) {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(10 * time.Millisecond) // the number is written
				cancel()
			}()
		}
		text, err := (&Box{Dir: dir, Most: 1 << 20}).Exec(ctx, ExecArguments{Argv: []string{"sh", "-c", row.script}, Timeout: 2})
		if (err != nil) != row.cancel {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		number, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid, err := strconv.Atoi(strings.TrimSpace(string(number)))
		if err != nil {
			t.Fatal(err)
		}
		lives := true
		for deadline := time.Now().Add(testhost.Patience(5 * time.Second)); lives != row.lives && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			lives = err == nil && !strings.Contains(string(stat), ") Z ")
		}
		if lives != row.lives {
			t.Errorf("%s: process %d lives: %t", name, pid, lives)
		}
		if row.lives {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it takes %s", name, took)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		command   []string
		arguments string
		want, err string
	}{
		{[]string{"printf", `%s|`, "{a}", "{list}", "n={n}", "x{gone}"}, `{"a":"$(id);*","list":["1",2,true],"n":1.50}`, "$(id);*|1|2|true|n=1.50|", ""},
		{[]string{"cat"}, `{"a": {"b": 1}}`, `{"a": {"b": 1}}` + "\n", ""},
		{[]string{"sh", "-c", "echo part; echo why >&2; exit 4"}, ``, "part\n", "why\n[sh: exit status 4]"},
		{[]string{"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x"}, ``, strings.Repeat("x", 1000) + "\n[99000 bytes left out]", ""},
		{[]string{"nothing-of-this-name"}, ``, "", "not found"},
		{[]string{"echo", "{a}"}, `{"a":"-n"}`, "", "must not begin with -"},
	} {
		got, err := (&Box{Dir: t.TempDir(), Most: 1000}).Do(context.Background(), tools.Order{Command: row.command, Arguments: json.RawMessage(row.arguments)})
		reason := ""
		if err != nil {
			reason = err.Error()
		}
		if got != row.want || !strings.Contains(reason, row.err) || (row.err == "") != (err == nil) {
			t.Errorf("%q: %.200q, %v", row.command, got, err)
		}
	}
}
