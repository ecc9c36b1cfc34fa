//go:build root

package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// container looks like a privileged Docker container to clove; testdata/container.sh makes it.
type container struct {
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// containers counts those of this test process, for their names.
var containers int

func startContainer(t *testing.T, h *host, command ...string) *container {
	t.Helper()
	containers++
	name := fmt.Sprintf("container-%d-%d", os.Getpid(), containers)
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	t.Cleanup(cancel)
	c := &container{}
	c.cmd = exec.CommandContext(ctx, "testdata/container.sh", append([]string{name, t.TempDir(), h.bin}, command...)...)
	c.cmd.Cancel = c.kill
	c.cmd.Stderr = &c.stderr
	out, _ := c.cmd.StdoutPipe() // fails only if it is set already
	c.stdout = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// kill ends the container. The script itself stays, to remove the rest.
func (c *container) kill() error {
	first := c.first()
	if first == 0 { // 0 would mean this test's own process group
		return os.ErrProcessDone
	}
	return unix.Kill(first, unix.SIGKILL)
}

// first returns the container's PID 1, the only child of the script's only child; 0 if there
// is none.
func (c *container) first() int {
	pid := c.cmd.Process.Pid
	for range 2 {
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid)) // it has ended: no number follows
		if _, err := fmt.Sscan(string(children), &pid); err != nil {
			return 0
		}
	}
	return pid
}

// end waits for the container's end.
func (c *container) end(t *testing.T) (stdout string, code int) {
	t.Helper()
	out, _ := io.ReadAll(c.stdout)
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s%s", err, out, &c.stderr)
	}
	return string(out), c.cmd.ProcessState.ExitCode()
}

// inContainer runs a script in a container of its own, with clove in its PATH.
func inContainer(t *testing.T, h *host, script string) string {
	t.Helper()
	c := startContainer(t, h, "sh", "-c", "exec 2>&1\n"+script)
	out, code := c.end(t)
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out, &c.stderr)
	}
	return out
}

func wantAll(t *testing.T, out string, want ...string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
}

// A script shortens doctor's output to one line of the states that it found: nothingMissing if
// everything works, another line if something is missing, and another if doctor printed
// nothing.
const (
	foundStates    = `sed -n "s/^ *\"status\": \"\([a-z]*\)\",*\$/\1/p" | sort -u | paste -sd, | sed "s/^/doctor: /"`
	nothingMissing = "doctor: ok\n"
)

// TestNothingIsMissingInAContainer: doctor finds everything, and the limits work. On cgroup v2
// the container's own processes must first be moved away.
func TestNothingIsMissingInAContainer(t *testing.T) {
	h := newHost(t)
	out := inContainer(t, h, `
		clove doctor --json | `+foundStates+`
		clove run --rm --pids-limit 20 -- sh -c 'for i in $(seq 40); do sleep 9 & done 2>/dev/null'; echo pids $?
		clove run --rm --memory 64M -- python3 -c 'x = bytearray(200 << 20)'; echo memory $?
		clove run --rm --disk 16M -- sh -c 'head -c 64M /dev/zero >/tmp/x'; echo disk $?
		clove run --rm --cpu-time 1s -- sh -c 'while :; do :; done'; echo cpu-time $?
		clove check && echo clean`)
	wantAll(t, out, nothingMissing, "pids limit of 20 refused", "memory 137\n", "memory limit of 64MiB reached", "disk limit of 16MiB reached", "cpu-time 124\n", "clean\n")
}

// TestFilesOfAContainer: its files lie on an overlay, which cannot be id-mapped. A copied
// directory works or the error names what it needs, and a writable bind is refused.
func TestFilesOfAContainer(t *testing.T) {
	h := newHost(t)
	out := inContainer(t, h, `
		clove run --rm --disk 32M --user root -- true; echo small $?
		mkdir -p /srv/work && echo 'open("made", "w").write("x")' >/srv/work/agent.py
		cd /srv/work && clove run --name work agent.py && clove apply work --yes && cat made && clove rm work
		clove run --rm -v /srv/work:/w -- true; echo bind $?
		clove run --rm -v /srv/work:/w:ro -- cat /w/made; echo read-only $?
		clove check && echo clean`)
	wantAll(t, out, "small 125\n", "has to fit into --disk", "A /workspace/made\nx", "bind 125\n", "on a volume", "xread-only 0\n", "clean\n")
}

// TestTheGateHoldsInAContainer: allowed targets are reached, and nothing else.
func TestTheGateHoldsInAContainer(t *testing.T) {
	h := newHost(t)
	out := inContainer(t, h, `
		ip addr add 192.0.2.80/32 dev lo
		cat >/srv/serve.py <<-'EOF'
			import socket, threading
			def serve(s):
			    while True:
			        c, _ = s.accept(); c.recv(999); c.sendall(b"HTTP/1.0 200 OK\r\n\r\nsite\n"); c.close()
			a, b = socket.create_server(("192.0.2.80", 80)), socket.create_server(("127.0.0.1", 8099))
			threading.Thread(target=serve, args=(a,)).start(); print("up", flush=True); serve(b)
		EOF
		cat >/usr/local/get.py <<-'EOF'
			import socket, sys
			s = socket.create_connection((sys.argv[1], int(sys.argv[2]))); s.sendall(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
			print(sys.argv[1], s.makefile().readline().split()[1])
		EOF
		mkfifo /srv/up; python3 /srv/serve.py >/srv/up & read up </srv/up
		get='python3 /usr/local/get.py'
		$get 192.0.2.80 80; echo control
		clove run --rm --allow 192.0.2.80 -- $get 192.0.2.80 80; echo allowed
		# clove's messages may come before or behind the output of the agent.
		clove run --rm --allow 192.0.2.81 -- $get 192.0.2.80 80 2>/srv/refused; echo refused; cat /srv/refused
		clove run --rm --allow 192.0.2.0/24 -- $get 192.0.2.80 80 2>/srv/own; echo own; cat /srv/own
		clove run --rm --host-port 8099 -- $get 127.0.0.1 8099; echo host-port
		clove run --allow 192.0.2.81 -- sleep 60 & sleep=$!
		while kill -0 $sleep && ! clove ps | grep -q running; do :; done
		kill -9 $sleep; wait $sleep; clove check; echo check $?
		clove gc; clove check && echo clean`)
	wantAll(t, out, "192.0.2.80 200\ncontrol\n192.0.2.80 200\nallowed\n", "refused tcp://192.0.2.80:80", "192.0.2.80 403\nrefused\n",
		"192.0.2.80 403\nown\n", "127.0.0.1 200\nhost-port\n", "its supervisor is gone", "check 1\n", "clean\n")
}

// TestCloveIsPID1OfAContainer: it passes signals on, returns the agent's status, and reaps
// children that it did not start.
func TestCloveIsPID1OfAContainer(t *testing.T) {
	h := newHost(t)
	c := startContainer(t, h, "clove", "run", "--rm", "--", "sh", "-c", `trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done`)
	if line, err := c.stdout.ReadString('\n'); line != "up\n" {
		t.Fatalf("%q, %v\n%s", line, err, &c.stderr)
	}
	first := c.first()
	orphan := exec.Command("nsenter", "--all", fmt.Sprintf("--target=%d", first), "sh", "-c", "(sleep 0.1 & echo $!)")
	out, err := orphan.Output()
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/proc/%d/root/proc/%s", first, strings.TrimSpace(string(out)))
	for deadline := time.Now().Add(patience()); exists(at) && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond) // only a zombie's parent is notified of it
	}
	if exists(at) {
		status, _ := os.ReadFile(at + "/status")
		t.Errorf("an orphan stays: %s", status)
	}
	unix.Kill(first, unix.SIGTERM)
	if _, code := c.end(t); code != 9 {
		t.Errorf("exit %d\n%s", code, &c.stderr)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
