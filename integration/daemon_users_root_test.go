//go:build root

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// The users of these tests need no entry in /etc/passwd: only the kernel's ids count. The
// group exists on every Debian and has no members.
const (
	memberUID   = 64001
	otherUID    = 64002
	strangerUID = 64003
	groupName   = "games"
	groupID     = 60
)

// as runs clove with the ids of a user other than root.
func (d *cloved) as(uid uint32, groups []uint32, args ...string) result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := d.command(ctx, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: groups}}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
}

// A member owns what it starts and sees nothing else; another member does not see it; root
// sees everything; a stranger cannot connect.
func TestDaemonUsers(t *testing.T) {
	d := newClovedFor(t, groupName)
	info, err := os.Stat(d.socket)
	if err != nil || info.Mode().Perm() != 0o660 || info.Sys().(*syscall.Stat_t).Gid != groupID {
		t.Errorf("the socket: %v, %v", info.Mode(), err)
	}
	group := []uint32{groupID}
	d.detach("roots", "sleep 1000")
	if r := d.as(memberUID, group, "run", "-d", "--name", "mine", "--", "sh", "-c", "echo hello; sleep 1000"); r.code != 0 {
		t.Fatalf("a member cannot run: %s", r.stderr)
	}
	for _, c := range []struct {
		who    string
		uid    uint32
		groups []uint32
		sees   string
	}{{"the owner", memberUID, group, "mine"}, {"another member", otherUID, group, ""}, {"root", 0, nil, members("mine") + " roots"}} {
		r := d.as(c.uid, c.groups, "ps")
		var names []string
		for _, line := range strings.Split(strings.TrimSpace(r.stdout), "\n")[1:] {
			names = append(names, strings.Fields(line)[1])
		}
		if got := strings.Join(names, " "); r.code != 0 || got != c.sees {
			t.Errorf("%s sees %q, want %q (%s)", c.who, got, c.sees, r.stderr)
		}
	}
	for _, verb := range []string{"inspect", "logs", "stop", "kill", "pause", "rm", "wait", "attach", "top"} {
		for _, run := range []string{"mine", "roots"} {
			if r := d.as(otherUID, group, verb, run); r.code == 0 || !strings.Contains(r.stderr, "there is no run") {
				t.Errorf("another's %s %s: %d, %s", verb, run, r.code, r.stderr)
			}
		}
	}
	if r := d.as(strangerUID, nil, "ps"); r.code == 0 || !strings.Contains(r.stderr, "you may not use cloved") {
		t.Errorf("a stranger: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := d.as(memberUID, group, "logs", "mine"); r.stdout != "hello\n" {
		t.Errorf("the owner's log: %q, %s", r.stdout, r.stderr)
	}
	if r := d.as(memberUID, group, "rm", "-f", "mine"); r.code != 0 {
		t.Errorf("the owner's rm: %s", r.stderr)
	}
}

// If the socket's mode is opened for everybody, the peer's credentials from the kernel still
// keep strangers out.
func TestDaemonStrangerWithAnOpenSocket(t *testing.T) {
	d := newClovedFor(t, groupName)
	if err := os.Chmod(d.socket, 0o666); err != nil {
		t.Fatal(err)
	}
	if r := d.as(strangerUID, []uint32{groupID}, "ps"); r.code != 0 {
		t.Errorf("the control, a member: %d, %s", r.code, r.stderr)
	}
	if r := d.as(strangerUID, nil, "ps"); r.code == 0 || !strings.Contains(r.stderr, "may not use cloved") {
		t.Errorf("a stranger: %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// cloved does nothing for a caller that the caller could not do by itself; for root it does.
func TestDaemonUserCannotBorrowRoot(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(secret, "key"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, flags := range map[string][]string{
		"a bind":              {"-v", "/root:/x:ro"},
		"the host's network":  {"--network", "host"},
		"a host port":         {"--host-port", "22"},
		"a privileged port":   {"-p", "80:80"},
		"no filter":           {"--seccomp", "unconfined"},
		"to go unenforced":    {"--allow-unenforced", "memory"},
		"another's workspace": {"--workspace", secret},
	} {
		args := append([]string{"run", "-d", "--name", "greedy"}, flags...)
		args = append(args, "--", "true")
		r := d.as(memberUID, group, args...)
		if r.code == 0 {
			t.Errorf("%s is given", what)
		}
		if !strings.Contains(r.stderr, "only root") && !strings.Contains(r.stderr, "ermission denied") && !strings.Contains(r.stderr, "cannot use") {
			t.Errorf("%s: %s", what, r.stderr)
		}
	}
	if r := d.clove("run", "-d", "--name", "rootly", "--workspace", secret, "-v", "/etc/hostname:/x:ro", "--", "true"); r.code != 0 {
		t.Errorf("the control, root: %s", r.stderr)
	}
	// Directly to the socket: a spec that the command line would not have built.
	line := `{"jsonrpc":"2.0","id":1,"method":"run.start","params":{"spec":{"name":"raw","command":["true"],"dir":"/","user":{"name":"agent","uid":1000,"gid":1000,"home":"/"},"network":"none","egress":{"limits":{"connections":1,"per_second":1}},"limits":{"memory_bytes":67108864,"memory_swap_bytes":67108864,"pids":64,"stop_grace_ns":1,"disk_bytes":67108864,"shm_bytes":1048576,"rlimits":[{"name":"nofile","soft":64,"hard":64}]},"files":{"workspace":"` + secret + `"},"seccomp":{"profile":"standard"},"policy":{"name":"standard","sha256":""}}}}` + "\n"
	if answer := d.raw(memberUID, line); !strings.Contains(answer, `"word":"denied"`) {
		t.Errorf("%s", answer)
	}
}

// Two members and root have a run of the same name at the same time. For each it means their
// own run, another user's name looks like one that no run has, and root names the others'
// runs with their owner.
func TestDaemonUsersWithOneName(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	for _, uid := range []uint32{memberUID, otherUID, 0} {
		if r := d.as(uid, group, "run", "-d", "--name", "web", "--", "sh", "-c", fmt.Sprintf("echo of %d; sleep 1000", uid)); r.code != 0 {
			t.Fatalf("%d: %s", uid, r.stderr)
		}
	}
	logged := func(uid uint32, run string) string {
		t.Helper()
		for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
			r := d.as(uid, group, "logs", run)
			if r.stdout+r.stderr != "" || time.Now().After(deadline) {
				return r.stdout + r.stderr
			}
		}
	}
	for _, uid := range []uint32{memberUID, otherUID, 0} {
		want := fmt.Sprintf("of %d\n", uid)
		for who, run := range map[uint32]string{uid: "web", 0: ownersName(uid, "web")} {
			if who == 0 && uid == 0 {
				run = "0/web"
			}
			if got := logged(who, run); got != want {
				t.Errorf("%d reads of %s %q, want %q", who, run, got, want)
			}
		}
	}
	d.ok("stop", "-t", "0s", "web")
	d.ok("rm", "web")
	if r := d.clove("rm", "-f", "web"); r.code == 0 || !strings.Contains(r.stderr, members("web")) {
		t.Errorf("root's bare name is another's run: %d, %s", r.code, r.stderr)
	}
	d.ok("rm", "-f", members("web"))
	for _, run := range []string{"web", members("web"), ownersName(otherUID, "web")} {
		if r := d.as(memberUID, group, "inspect", run); r.code == 0 || !strings.Contains(r.stderr, "there is no run") || strings.Contains(r.stderr, "another user") {
			t.Errorf("a member's %s: %d, %s", run, r.code, r.stderr)
		}
	}
	if r := d.clove("ps", "--format", "{{.Names}}"); r.stdout != ownersName(otherUID, "web")+"\n" {
		t.Errorf("left: %q", r.stdout)
	}
}

// members is root's form of the name of a member's run, and ownersName that of any user's.
func members(name string) string { return ownersName(memberUID, name) }

func ownersName(uid uint32, name string) string { return agent.RunName{UID: uid, Name: name}.For(0) }

// raw sends bytes to the socket as a user, and returns the first line of the answer.
func (d *cloved) raw(uid uint32, text string) string {
	d.t.Helper()
	cmd := exec.Command("/usr/bin/python3", "-c", `import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read()); print(s.makefile().readline())`, d.socket)
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{groupID}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// newClovedFor starts a daemon that a group may use.
func newClovedFor(t *testing.T, group string) *cloved {
	t.Helper()
	d := newCloved(t)
	if err := os.Chmod(filepath.Dir(d.run), 0o711); err != nil {
		t.Fatal(err)
	}
	d.stop(unix.SIGTERM)
	d.group = group
	d.serve()
	return d
}
