//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// counts is a command that prints how many words follow and counts total bytes for execve(2) with
// the environment, which is in the form of /proc/PID/environ.
func counts(total int, environ string) (command []string, words int) {
	const each = 1 + 8 // the zero byte and the pointer
	command = []string{"/bin/sh", "-c", "echo $#", "sh"}
	total -= len(environ) + 8*strings.Count(environ, "\x00") + len(command[0]) + 1
	for _, word := range command {
		total -= len(word) + each
	}
	for ; total > 0; words++ {
		next := min(total, 100<<10)
		if rest := total - next; rest > 0 && rest <= each {
			next -= 2 * each
		}
		command, total = append(command, strings.Repeat("x", next-each)), total-next
	}
	return command, words
}

// The control: this is where the kernel's own limit is, to the byte.
func TestExecSizeIsTheKernels(t *testing.T) {
	for over, refused := range []bool{false, true} {
		command, _ := counts(1<<20+over, "A=b\x00")
		// prlimit(1) executes it with the limit; its own arguments have another.
		cmd := exec.Command("/bin/sh", "-c", `ulimit -S -s 4096; exec env -i A=b /usr/bin/python3 -c '
import os, sys
command = sys.stdin.buffer.read().split(b"\0")
try: os.execve(command[0], command, {b"A": b"b"})
except OSError as e: print(e.errno)'`)
		cmd.Stdin = strings.NewReader(strings.Join(command, "\x00"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)) == fmt.Sprint(int(unix.E2BIG)); err != nil || got != refused {
			t.Errorf("%d over: %v, %.200q", over, err, out)
		}
	}
}

// Each way to a command takes what execve(2) takes, by root and by a member, and refuses one byte more.
func TestExecSizeIsTheSameOnEveryPath(t *testing.T) {
	const total, longest = 1 << 20, 128<<10 - 1
	d := newClovedFor(t, groupName)
	root := func(args ...string) result { return d.clove(args...) }
	member := func(args ...string) result { return d.as(memberUID, []uint32{groupID}, args...) }
	dir := t.TempDir()
	for name, size := range map[string]int{"fits": longest, "long": longest + 1} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("A="+strings.Repeat("x", size-2)+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for p := dir; p != os.TempDir(); p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	limit := []string{"--ulimit", fmt.Sprintf("stack=%d", 4*total)}
	for who, clove := range map[string]func(...string) result{"root": root, "member": member} {
		run := append([]string{"run"}, limit...)
		at := func(name string, flags ...string) []string {
			return append(append(append([]string{}, run...), "--name", name), flags...)
		}
		detached := func(name string, flags []string, command ...string) result {
			r := clove(append(append(at(name, append(flags, "-d")...), "--"), command...)...)
			if r.code == 0 {
				clove("wait", name)
				r = clove("logs", name)
			}
			return r
		}
		ways := map[string]func(name string, flags []string, command ...string) result{
			"foreground": func(name string, flags []string, command ...string) result {
				return clove(append(append(at(name, flags...), "--"), command...)...)
			},
			"detached": detached,
			"exec": func(_ string, _ []string, command ...string) result {
				return clove(append([]string{"exec", "box", "--"}, command...)...)
			},
		}
		if r := clove(append(at("box", "-d"), "--", "sleep", "1000")...); r.code != 0 {
			t.Fatalf("%s: %s", who, r.stderr)
		}
		environ := clove("exec", "box", "--", "cat", "/proc/self/environ").stdout
		n := 0
		for way, try := range ways {
			for over, refused := range []string{"", fmt.Sprintf("have %d bytes, and the kernel takes at most %d", total+1, total)} {
				n++
				command, words := counts(total+over, environ)
				r := try(fmt.Sprintf("b%02d", n), nil, command...) // its name is as long as box: so is the environment
				if refused != "" && (r.code == 0 || !strings.Contains(r.stderr, refused)) || refused == "" && r.stdout != fmt.Sprintln(words) {
					t.Errorf("%s, %s, total+%d: %d, %.200q, %.300q", who, way, over, r.code, r.stdout, r.stderr)
				}
			}
			if way == "exec" { // one of the host's arguments cannot be longer: TestExecSizeOfTheAPI
				r := try("", nil, "/bin/sh", "-c", "echo ${#1}", "sh", strings.Repeat("x", longest))
				if r.stdout != fmt.Sprintln(longest) {
					t.Errorf("%s, exec: %d, %q, %.300q", who, r.code, r.stdout, r.stderr)
				}
				continue
			}
			for file, refused := range map[string]bool{"fits": false, "long": true} {
				n++
				r := try(fmt.Sprintf("b%02d", n), []string{"--env-file", filepath.Join(dir, file)}, "/bin/sh", "-c", "echo ${#A}")
				if refused && (r.code == 0 || !strings.Contains(r.stderr, "variable A has 131072 bytes")) || !refused && r.stdout != fmt.Sprintln(longest-2) {
					t.Errorf("%s, %s, %s string: %d, %q, %.300q", who, way, file, r.code, r.stdout, r.stderr)
				}
			}
		}
	}
}

// The API takes as much, up to the largest that execve(2) knows; a connection's line is longer.
func TestExecSizeOfTheAPI(t *testing.T) {
	const inherits, ceiling = 2 << 20, 6 << 20
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil || stack.Cur != 8<<20 || stack.Max < 4*ceiling {
		t.Skipf("the stack limit is %+v here, %v", stack, err)
	}
	d := newCloved(t)
	d.ok("run", "-d", "--name", "box", "--ulimit", fmt.Sprintf("stack=%d", 4*ceiling), "--", "sleep", "1000")
	environ := d.ok("exec", "box", "--", "cat", "/proc/self/environ")
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	c := client.At(d.socket)
	defer c.Close()
	run := func(command ...string) (string, error) {
		s, err := client.Open(ctx, c, methods.RunExec, api.ExecParams{RunParams: api.RunParams{Run: "box"}, Exec: agent.Exec{Command: command}})
		if err != nil {
			return "", err
		}
		defer s.Close()
		var out bytes.Buffer
		err = s.Answer(ctx, nil, func(piece api.SessionOutput) error { out.Write(piece.Data); return nil })
		return out.String(), err
	}
	got, err := client.Do(ctx, c, methods.RunGet, api.RunParams{Run: "box"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	start := func(command ...string) (string, error) {
		n++
		spec := got.Run.Spec
		spec.ID, spec.Name, spec.Command, spec.Env = "", fmt.Sprintf("api-%d", n), command, []string{"A=b"}
		spec.Limits.Rlimits = slices.DeleteFunc(slices.Clone(spec.Limits.Rlimits), func(r agent.Rlimit) bool { return r.Name == "stack" })
		if _, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec}); err != nil {
			return "", err
		}
		d.ok("wait", spec.Name)
		return d.ok("logs", spec.Name), nil
	}
	for what, way := range map[string]struct {
		do      func(...string) (string, error)
		most    int
		environ string
	}{"exec": {run, ceiling, environ}, "start": {start, inherits, "A=b\x00"}} {
		command, words := counts(way.most, way.environ)
		if out, err := way.do(command...); err != nil || out != fmt.Sprintln(words) {
			t.Errorf("%s: %.200q, %v", what, out, err)
		}
		command, _ = counts(way.most+1, way.environ)
		if out, err := way.do(command...); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the kernel takes at most %d", way.most)) {
			t.Errorf("%s, one more: %.200q, %v", what, out, err)
		}
		if out, err := way.do("/bin/sh", "-c", "echo ${#1}", "sh", strings.Repeat("x", 128<<10-1)); err != nil || out != fmt.Sprintln(128<<10-1) {
			t.Errorf("%s, the longest: %.200q, %v", what, out, err)
		}
		if out, err := way.do("/bin/true", strings.Repeat("x", 128<<10)); err == nil || !strings.Contains(err.Error(), "has 131072 bytes, and the kernel takes at most 131071") {
			t.Errorf("%s, too long: %.200q, %v", what, out, err)
		}
	}
}
