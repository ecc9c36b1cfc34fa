package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"clove.run/clove/internal/testhost"
	"clove.run/clove/tools"
)

// made makes a call of an order in JSON.
func made(order string) (status int, result, reason string) {
	var stdout, stderr bytes.Buffer
	status = call(context.Background(), strings.NewReader(order), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestCalls(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("long", bytes.Repeat([]byte("äöü\n"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	const schema = `"schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	for _, row := range []struct {
		order          string
		status         int
		result, reason string // parts
	}{
		{`{"tool":"echo","arguments":{"text":"hi"}}`, tools.ExitDone, "hi", ""},
		{`{"tool":"echo","arguments":{"text":"` + strings.Repeat("ä", 100) + `"},"most":101}`, tools.ExitDone, "\n[", ""},
		{`{"tool":"echo","arguments":{"text":"abcdef"},"most":3}`, tools.ExitDone, "abc", ""},
		{`{"tool":"echo","arguments":{"text":1}}`, tools.ExitInvalid, "", "argument text: it must be string"},
		{`{"tool":"echo","arguments":{"txt":"x"}}`, tools.ExitInvalid, "", `"text" is missing`},
		{`{"tool":"echo"}`, tools.ExitInvalid, "", `"text" is missing`},
		{`{"tool":"echo","arguments":["x"]}`, tools.ExitInvalid, "", "must be object"},
		{`{"tool":"delete","arguments":{}}`, tools.ExitInvalid, "", "no built-in tool"},
		{`{"tool":"write","arguments":{"path":"d/x","content":"one"}}`, tools.ExitDone, "wrote 3 bytes", ""},
		{`{"tool":"read","arguments":{"path":"d/x"}}`, tools.ExitDone, "one", ""},
		{`{"tool":"read","arguments":{"path":"d/y"}}`, tools.ExitFailed, "", "no such file"},
		{`{"tool":"read","arguments":{"path":"long"},"most":1000}`, tools.ExitDone, "[the file goes on: read it with offset ", ""},
		{`{"tool":"exec","arguments":{"argv":["sh","-c","pwd; exit 3"]}}`, tools.ExitDone, `"exit_code":3,"stdout":"` + dir + `\n"`, ""},
		{`{"tool":"exec","arguments":{"argv":["head","-c100000","/dev/zero"]},"most":5000}`, tools.ExitDone, `bytes left out`, ""},
		{`{"tool":"git","arguments":{"op":"log","args":["--output=x"]}}`, tools.ExitInvalid, "", "is not allowed"},
		{`{"tool":"git","arguments":{"op":"status","repo":"/"}}`, tools.ExitFailed, "", "no git repository"},
		{`{"tool":"mine","command":["cat","d/x","{a}"],` + schema + `,"arguments":{"a":"/dev/null"}}`, tools.ExitDone, "one", ""},
		{`{"tool":"mine","command":["sh","-c","echo part; echo why >&2; false"]}`, tools.ExitFailed, "part\n", "why\n[sh: exit status 1]"},
		{`{"tool":"mine","command":["cat","{a}"],` + schema + `,"arguments":{"a":"-n"}}`, tools.ExitInvalid, "", "must not begin with -"},
		{`{"tool":"mine","command":["cat","{a}"],` + schema + `,"arguments":{"b":"x"}}`, tools.ExitInvalid, "", `"a" is missing`},
		{`{"tool":"mine","command":["cat","{b}"],` + schema + `,"arguments":{"a":"x"}}`, tools.ExitInvalid, "", "no property for {b}"},
		{`{"tool":"mine","command":["cat"],"schema":{"$ref":"http://127.0.0.1/"}}`, tools.ExitInvalid, "", "nothing is loaded"},
		{`{"tool":"mine","command":["cat"],` + schema + `,"arguments":{"a":3,"n":12345678901234567890,"a":"x"}}`, tools.ExitDone, `{"a":"x","n":12345678901234567890}`, ""},
		{`{"tool":"mine","command":["./x"]}`, tools.ExitInvalid, "", "absolute path"},
		{`{"tool":"mine","command":[]}`, tools.ExitInvalid, "", "no program"},
		{`{"tool":"mine","command":["yes"],"most":1000,"arguments":{}`, tools.ExitInvalid, "", "the order is none"},
		{``, tools.ExitInvalid, "", "the order is none"},
		{`{"tool":"echo","arguments":{"text":"` + strings.Repeat("x", tools.MaxArguments) + `"}}`, tools.ExitInvalid, "", "more than 49152 bytes"},
		{strings.Repeat(" ", maxOrder+1), tools.ExitInvalid, "", "the order has more than"},
	} {
		status, result, reason := made(row.order)
		if status != row.status || !strings.Contains(result, row.result) || !strings.Contains(reason, row.reason) || row.reason == "" && reason != "" || row.result == "" && result != "" {
			t.Errorf("%.200s: %d, %.300q, %.300q", row.order, status, result, reason)
		}
		var o tools.Order
		if json.Unmarshal([]byte(row.order), &o) == nil && o.Most > 0 && len(result) > o.Most || len(reason) > tools.MaxError {
			t.Errorf("%.200s: a result of %d bytes, a reason of %d", row.order, len(result), len(reason))
		}
		if d, _ := tools.Builtin(o.Tool); status == tools.ExitDone && d.Result != nil && !json.Valid([]byte(result)) {
			t.Errorf("%.200s: %.300q is no JSON", row.order, result)
		}
	}
}

// SIGTERM ends a call with all that it started, and SIGKILL with the program that it started.
func TestSignalsEndACall(t *testing.T) {
	if os.Getenv("CLOVE_TEST_MAIN") != "" {
		main()
		return
	}
	t.Parallel()
	for signal, name := range map[syscall.Signal]string{syscall.SIGTERM: "child", syscall.SIGKILL: "leader"} {
		dir := t.TempDir()
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Dir, c.Env = dir, []string{"CLOVE_TEST_MAIN=1", "PATH=" + os.Getenv("PATH")}
		c.Stdin = strings.NewReader(`{"tool":"exec","arguments":{"argv":["sh","-c","echo $$ >leader; sleep 61 & echo $! >child; mv child leader ..; wait"],"cwd":"` + dir + `/in"}}`)
		if err := os.Mkdir(dir+"/in", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(testhost.Patience(10 * time.Second))
		var number []byte
		for len(number) == 0 && time.Now().Before(deadline) {
			if _, err := os.Stat(dir + "/leader"); err == nil { // moved behind child
				number, _ = os.ReadFile(dir + "/" + name)
			}
			time.Sleep(time.Millisecond)
		}
		stat := "/proc/" + strings.TrimSpace(string(number)) + "/stat"
		if _, err := os.Stat(stat); err != nil {
			t.Errorf("%s does not run: %v", name, err)
		}
		_ = c.Process.Signal(signal)
		_ = c.Wait()
		if got := c.ProcessState.ExitCode(); signal == syscall.SIGTERM && got != tools.ExitFailed {
			t.Errorf("it exits with %d", got)
		}
		lives := true
		for lives && time.Now().Before(deadline) {
			text, err := os.ReadFile(stat)
			lives = err == nil && !strings.Contains(string(text), ") Z ")
			time.Sleep(time.Millisecond)
		}
		if lives {
			t.Errorf("%s lives behind %s", name, signal)
		}
		if number, err := os.ReadFile(dir + "/child"); err == nil && signal == syscall.SIGKILL {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(number))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // the end of its sandbox would
			}
		}
	}
}

// A value of a caller's stays one word: no shell reads it, and it is no option. The controls are
// the same texts for a shell, and as a word of the command's own.
func TestArgumentsDoNotBreakOutOfATemplate(t *testing.T) {
	t.Chdir(t.TempDir())
	const schema = `{"type":"object","properties":{"a":{"type":"string"}}}`
	for name, row := range map[string]struct {
		template, control []string
		value             string
	}{
		"shell":  {[]string{"echo", "x", "{a}"}, []string{"sh", "-c", "echo x $(touch broken)"}, "$(touch broken)"},
		"chain":  {[]string{"echo", "x{a}"}, []string{"sh", "-c", "echo x; touch broken"}, "; touch broken"},
		"option": {[]string{"sort", "{a}"}, []string{"sort", "--output=broken", "/dev/null"}, "--output=broken"},
		"end":    {[]string{"sort", "--", "{a}"}, []string{"sort", "--output=broken", "/dev/null"}, "--output=broken"},
	} {
		run := func(command []string, value string) bool {
			order, err := json.Marshal(tools.Order{Tool: "mine", Command: command, Schema: json.RawMessage(schema), Arguments: json.RawMessage(fmt.Sprintf(`{"a":%q}`, value))})
			if err != nil {
				t.Fatal(err)
			}
			_, result, reason := made(string(order))
			t.Log(name, result, reason)
			_, err = os.Stat("broken")
			_ = os.Remove("broken")
			return err == nil
		}
		if run(row.template, row.value) {
			t.Errorf("%s: %q breaks out", name, row.value)
		}
		if !run(row.control, "") {
			t.Errorf("%s: control: %q does nothing", name, row.control)
		}
	}
}

func TestResultsFit(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("ä", 1000), strings.Repeat("\xff", 1000), strings.Repeat("x", 100_000)} {
		for most := range 2100 {
			got := fit(text, most)
			if len(got) > most || !utf8.ValidString(got) {
				t.Fatalf("%d bytes for %d of %.10q", len(got), most, text)
			}
			if most > 100 && len(strings.ToValidUTF8(text, "\uFFFD")) > most && !strings.HasSuffix(got, "bytes left out]") {
				t.Fatalf("%q does not say what is left out", got)
			}
		}
	}
}

// Whatever an order is, the program answers with a status and within bounds. Only echo is called.
func FuzzOrder(f *testing.F) {
	f.Add(`{"tool":"echo","arguments":{"text":"hi"},"most":3}`)
	f.Add(`{"tool":"mine","command":["true","{a}"],"schema":{"properties":{"a":{}}},"arguments":{"a":[1]}}`)
	f.Fuzz(func(t *testing.T, order string) {
		o, err := read(strings.NewReader(order))
		if err != nil {
			return
		}
		if o.Most <= 0 || o.Most > maxMost {
			t.Errorf("a result may have %d bytes", o.Most)
		}
		if check(o) != nil {
			return
		}
		if o.Command != nil {
			_, _ = tools.Expand(o.Command, o.Arguments)
			return
		}
		if o.Tool == "echo" {
			if status := call(context.Background(), strings.NewReader(order), io.Discard, io.Discard); status != tools.ExitDone {
				t.Errorf("%s: %d", order, status)
			}
		}
	})
}

func TestTheWorkingDirectoryIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if status, _, reason := made(`{"tool":"list"}`); status != tools.ExitFailed || reason == "" {
		t.Errorf("%d, %q", status, reason)
	}
}
