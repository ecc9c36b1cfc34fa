//go:build root

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
)

// program is a program of a user that has started `clove mcp`, and writes lines of JSON-RPC to it.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	to    *json.Encoder
	input interface{ Close() error }
	from  *bufio.Scanner
	last  int
}

// mcpAs starts clove mcp as a user, in a folder.
func (d *cloved) mcpAs(uid uint32, home, dir string, flags ...string) *program {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := d.command(ctx, append([]string{"mcp"}, flags...)...)
	cmd.Dir, cmd.Env = dir, append(cmd.Env, "HOME="+home)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{groupID}}}
	}
	input, err := cmd.StdinPipe()
	mustDo(d.t, err)
	output, err := cmd.StdoutPipe()
	mustDo(d.t, err)
	cmd.Stderr = os.Stderr
	mustDo(d.t, cmd.Start())
	p := &program{t: d.t, cmd: cmd, to: json.NewEncoder(input), input: input, from: bufio.NewScanner(output)}
	p.from.Buffer(nil, 1<<20)
	d.t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	p.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	mustDo(p.t, p.to.Encode(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"}))
	return p
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send sends a request, and does not wait.
func (p *program) send(method string, params any) {
	p.t.Helper()
	p.last++
	mustDo(p.t, p.to.Encode(map[string]any{"jsonrpc": "2.0", "id": p.last, "method": method, "params": params}))
}

// request returns the result of a request.
func (p *program) request(method string, params any) json.RawMessage {
	p.t.Helper()
	p.send(method, params)
	for p.from.Scan() {
		var m struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		mustDo(p.t, json.Unmarshal(p.from.Bytes(), &m))
		if m.ID == p.last {
			if m.Error != nil {
				p.t.Fatalf("%s: %s", method, m.Error)
			}
			return m.Result
		}
	}
	p.t.Fatalf("%s: no answer: %v", method, p.from.Err())
	return nil
}

// tool uses a tool. It returns the text, and whether the tool failed.
func (p *program) tool(name string, arguments map[string]any) (text string, failed bool) {
	p.t.Helper()
	var result struct {
		Content []struct{ Text string } `json:"content"`
		IsError bool                    `json:"isError"`
	}
	mustDo(p.t, json.Unmarshal(p.request("tools/call", map[string]any{"name": name, "arguments": arguments}), &result))
	for _, part := range result.Content {
		text += part.Text
	}
	return text, result.IsError
}

// good is tool for one that must not fail.
func (p *program) good(name string, arguments map[string]any) string {
	p.t.Helper()
	text, failed := p.tool(name, arguments)
	if failed {
		p.t.Fatalf("%s %v: %s", name, arguments, text)
	}
	return text
}

// door is the clove-mcp that clove mcp has started.
func (p *program) door() int {
	p.t.Helper()
	found := 0
	until(p.t, "clove-mcp runs", func() bool {
		paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			if n, _ := fmt.Sscan(string(text), &found); n == 1 {
				return true
			}
		}
		return false
	})
	return found
}

// ownedFolder is a folder of a user, that others cannot look into.
func ownedFolder(t *testing.T, uid uint32) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "home")
	mustDo(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	mustDo(t, errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, int(uid), int(uid))))
	return dir
}

// A program of a user, root or not, has code run and files written in a sandbox. It cannot read the user's
// home, which the same program outside does; the folder of --workspace stays as it is until apply_changes, and
// what that writes is the user's. Nothing is left at the end.
func TestAProgramOfAPersonUsesTools(t *testing.T) {
	for name, uid := range map[string]uint32{"root": 0, "a member": memberUID} {
		t.Run(name, func(t *testing.T) {
			d := newClovedFor(t, groupName)
			home := ownedFolder(t, uid)
			project, secret := filepath.Join(home, "project"), filepath.Join(home, "key")
			mustDo(t, errors.Join(os.Mkdir(project, 0o755), os.WriteFile(secret, []byte("the key"), 0o600), os.WriteFile(filepath.Join(project, "a.txt"), []byte("old\n"), 0o644)))
			for _, path := range []string{project, secret, filepath.Join(project, "a.txt")} {
				mustDo(t, os.Chown(path, int(uid), int(uid)))
			}
			code := fmt.Sprintf("print(open(%q).read())", secret)
			outside := exec.Command(python, "-c", code)
			outside.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
			if text, err := outside.CombinedOutput(); err != nil || string(text) != "the key\n" {
				t.Fatalf("control: the program outside: %v, %s", err, text)
			}
			p := d.mcpAs(uid, home, project, "--workspace", ".", "--memory", "256M")
			if names := regexp.MustCompile(`"name":"[a-z_]+"`).FindAllString(string(p.request("tools/list", map[string]any{})), -1); len(names) != 11 {
				t.Errorf("%q", names)
			}
			p.confined(uid)
			if text, failed := p.tool("run_code", map[string]any{"language": "python", "code": code}); !failed || !strings.Contains(text, "FileNotFoundError") {
				t.Errorf("the program inside reads the home: %s", text)
			}
			if text := p.good("run_code", map[string]any{"language": "python", "code": "import os; print(6 * 7, os.getcwd())"}); text != "42 /workspace\n" {
				t.Errorf("%q", text)
			}
			for language, code := range map[string]string{"bash": "-x 2>/dev/null; echo 42", "python": "-1; print(42)"} {
				if text := p.good("run_code", map[string]any{"language": language, "code": code}); text != "42\n" {
					t.Errorf("%s: %q", language, text)
				}
			}
			p.good("write_file", map[string]any{"path": "sub/b.txt", "content": "one\ntwo\n"})
			if text := p.good("read_file", map[string]any{"path": "sub/b.txt", "offset": 2}); text != "two\n" {
				t.Errorf("%q", text)
			}
			if text := p.good("list_files", map[string]any{"depth": 2}); !strings.Contains(text, "f 8 sub/b.txt\n") || !strings.Contains(text, "f 4 a.txt\n") {
				t.Errorf("%q", text)
			}
			written := filepath.Join(project, "sub/b.txt")
			if _, err := os.Stat(written); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the host's folder has changed before the apply: %v", err)
			}
			p.applies(written, uid)
			mustDo(t, p.input.Close())
			if err := p.cmd.Wait(); err != nil {
				t.Error(err)
			}
			if left := d.ok("ps", "-a", "-q"); left != "" {
				t.Errorf("%s are left", left)
			}
		})
	}
}

// applies has the changes shown, and then written.
func (p *program) applies(written string, uid uint32) {
	p.t.Helper()
	if text, failed := p.tool("apply_changes", map[string]any{"dry_run": false}); !failed {
		p.t.Errorf("it was applied unseen: %s", text)
	}
	shown := p.good("apply_changes", map[string]any{})
	digest := regexp.MustCompile(`digest (sha256:[0-9a-f]+)`).FindStringSubmatch(shown)
	if digest == nil || !strings.Contains(shown, "\n+two\n") {
		p.t.Fatalf("%s", shown)
	}
	p.good("write_file", map[string]any{"path": "late.txt", "content": "x"})
	if text, failed := p.tool("apply_changes", map[string]any{"dry_run": false, "digest": digest[1]}); !failed || !strings.Contains(text, "since you looked") {
		p.t.Errorf("what came later was applied: %s", text)
	}
	p.good("run_command", map[string]any{"command": "rm late.txt"})
	p.good("apply_changes", map[string]any{"dry_run": false, "digest": digest[1]})
	if info, err := os.Stat(written); err != nil || info.Sys().(*syscall.Stat_t).Uid != uid {
		p.t.Errorf("%v, %v", info, err)
	}
}

// confined looks at clove-mcp from outside: what it has, and that it is not the user's where root could see to that.
func (p *program) confined(uid uint32) {
	p.t.Helper()
	pid := p.door()
	status, err := pidfd.Status(pid)
	mustDo(p.t, err)
	if status["NoNewPrivs"] != "1" || status["Seccomp"] != "2" || status["CapEff"] != "0000000000000000" || status["CapPrm"] != "0000000000000000" {
		p.t.Errorf("clove-mcp has %q", status)
	}
	has := 0
	if _, err := fmt.Sscan(status["Uid"], &has); err != nil || uid == 0 && has < agent.FirstHostID || uid != 0 && has != int(uid) {
		p.t.Errorf("clove-mcp is user %d", has)
	}
}

// A clove mcp that is killed in the middle of a call leaves no run, and no clove-mcp.
func TestAKilledServerLeavesNoRun(t *testing.T) {
	for name, uid := range map[string]uint32{"root": 0, "a member": memberUID} {
		t.Run(name, func(t *testing.T) {
			d := newClovedFor(t, groupName)
			home := ownedFolder(t, uid)
			p := d.mcpAs(uid, home, home)
			p.good("run_command", map[string]any{"command": "true"})
			if live := d.ok("ps", "-q"); strings.Count(live, "\n") != 1 {
				t.Fatalf("control: %q live", live)
			}
			p.send("tools/call", map[string]any{"name": "run_command", "arguments": map[string]any{"command": "sleep 1000"}})
			door := p.door()
			mustDo(t, p.cmd.Process.Kill())
			_ = p.cmd.Wait()
			until(t, "no run is left", func() bool { return d.ok("ps", "-a", "-q") == "" })
			awaitExit(t, door)
		})
	}
}

// The end of the input ends the server while a call goes on, too.
func TestTheEndOfTheInputEndsTheServer(t *testing.T) {
	d := newClovedFor(t, groupName)
	home := ownedFolder(t, memberUID)
	p := d.mcpAs(memberUID, home, home)
	p.good("run_command", map[string]any{"command": "true"})
	p.send("tools/call", map[string]any{"name": "run_command", "arguments": map[string]any{"command": "sleep 1000", "timeout_seconds": 2}})
	mustDo(t, p.input.Close())
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left := d.ok("ps", "-a", "-q"); left != "" {
		t.Errorf("%s are left", left)
	}
}
