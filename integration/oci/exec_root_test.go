//go:build root

package oci

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// TestExecIsWhatItsFlagsSay: each row's control is the row without flags, which prints
// something else.
func TestExecIsWhatItsFlagsSay(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r, func(s *specs.Spec) { s.Process.NoNewPrivileges = false })
	const capabilities = "grep Cap /proc/self/status | tr -d '\\n\\t'"
	for _, row := range []struct{ flags, script, plain, flagged string }{
		{"--cwd /tmp", "pwd", "/", "/tmp"},
		{"-e A=1,2 -e B=3", "echo $A$B", "", "1,23"},
		{"--user 5", "id -u; id -g", "0\n0", "5\n0"},
		{"-u 5:6", "id -u; id -g", "0\n0", "5\n6"},
		{"--additional-gids 7 --additional-gids 8", "id -G", "0", "0 7 8"},
		{"--no-new-privs", "grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t0", "NoNewPrivs:\t1"},
		{"--cap CAP_CHOWN", capabilities,
			"CapInh:0000000000000000CapPrm:0000000020000420CapEff:0000000020000420CapBnd:0000000020000420CapAmb:0000000000000000",
			"CapInh:0000000000000000CapPrm:0000000020000421CapEff:0000000020000421CapBnd:0000000020000421CapAmb:0000000000000000"},
	} {
		if got := r.Do("exec", id, "sh", "-c", row.script); got.Status != 0 || got.Out != row.plain {
			t.Errorf("without %s: %+v", row.flags, got)
		}
		args := append(append([]string{"exec"}, strings.Fields(row.flags)...), id, "sh", "-c", row.script)
		if got := r.Do(args...); got.Status != 0 || got.Out != row.flagged {
			t.Errorf("%s: %+v", row.flags, got)
		}
	}
	// Flags after the id belong to the command, not to clove-oci.
	if got := r.Do("exec", id, "echo", "--detach", "-e", "X"); got.Out != "--detach -e X" {
		t.Errorf("%+v", got)
	}
}

// A word that is not UTF-8 is refused: as JSON, in which libcontainer passes it on, it would be the
// control's.
func TestExecPassesNoOtherBytes(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	if got := r.Do("exec", id, "sh", "-c", "echo $1 | od -An -tx1", "sh", "bad\xff"); got.Status == 0 || !strings.Contains(got.Err, "is not UTF-8") {
		t.Errorf("%+v", got)
	}
	if got := r.Do("exec", id, "sh", "-c", "echo $1 | od -An -tx1", "sh", "bad\ufffd"); got.Status != 0 || strings.TrimSpace(got.Out) != "62 61 64 ef bf bd 0a" {
		t.Errorf("the control: %+v", got)
	}
}

func TestExecOfAProcessFile(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	text, err := json.Marshal(specs.Process{Args: []string{"sh", "-c", "cat; pwd; id -u; exit 9"}, Cwd: "/proc", User: specs.User{UID: 3}, Env: []string{"PATH=/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.Directory(), "process.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := r.DoWith(strings.NewReader("in\n"), "exec", "--process", path, id); got.Status != 9 || got.Out != "in\n/proc\n3" {
		t.Errorf("%+v", got)
	}
}

func TestADetachedExecLeavesItsPid(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	pidFile := filepath.Join(r.Directory(), "pid")
	r.Must("exec", "--detach", "--pid-file", pidFile, id, "sleep", "1000")
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	if err := json.Unmarshal([]byte(r.Must("ps", "--format", "json", id)), &pids); err != nil {
		t.Fatal(err)
	}
	first := strconv.Itoa(r.State(id).Pid)
	if len(pids) != 2 || strconv.Itoa(pids[0]) != first || strconv.Itoa(pids[1]) != string(text) {
		t.Errorf("ps has %v, the state %s, the file %s", pids, first, text)
	}
	table := strings.Split(r.Must("ps", id, "-o", "pid,args"), "\n")
	if len(table) != 3 || !strings.Contains(table[0], "PID") || strings.TrimSpace(table[2]) != string(text)+" sleep 1000" {
		t.Errorf("the table is %q", table)
	}
}

// TestExecThatCannotBeSaysSo: with status 255, which a process rarely has.
func TestExecThatCannotBeSaysSo(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	for want, args := range map[string][]string{
		`executable file not found in $PATH`:          {id, "nothing"},
		"exec args cannot be empty":                   {id},
		"container does not exist":                    {"none", "true"},
		"bad uid":                                     {"--user", "-1", id, "true"},
		"cannot allocate tty if clove-oci will":       {"--detach", "--tty", id, "true"},
		"unable to stat preserved-fd":                 {"--preserve-fds", "99", id, "true"},
		"missing <controller>: prefix":                {"--cgroup", "a", "--cgroup", "b", id, "true"},
		"controller pids specified multiple times":    {"--cgroup", "pids:a", "--cgroup", "pids:b", id, "true"},
		"no such file or directory":                   {"--process", "/none", id},
		"cannot use console socket if clove-oci will": {"--console-socket", "/none", id, "true"},
	} {
		got := r.Do(append([]string{"exec"}, args...)...)
		if got.Status != 255 || !strings.Contains(got.Err, want) || !strings.Contains(got.Err, "exec failed: ") {
			t.Errorf("%v: %+v, want %s", args, got, want)
		}
	}
	r.Must("kill", id, "KILL")
	r.Await("the end", func() bool { return r.State(id).Status == specs.StateStopped })
	if got := r.Do("exec", id, "true"); got.Status != 255 || !strings.Contains(got.Err, "cannot exec in a stopped container") {
		t.Errorf("%+v", got)
	}
}

func TestExecInAPausedContainer(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	r.Must("pause", id)
	if state := r.State(id); state.Status != "paused" {
		t.Errorf("after pause: %+v", state)
	}
	if got := r.Do("exec", id, "true"); got.Status != 255 || !strings.Contains(got.Err, "cannot exec in a paused container") {
		t.Errorf("%+v", got)
	}
	wait := background(t, r, nil, nil, "exec", "--ignore-paused", id, "sh", "-c", "exit 4")
	r.Await("the process, frozen", func() bool {
		var pids []int
		return json.Unmarshal([]byte(r.Must("ps", "--format", "json", id)), &pids) == nil && len(pids) == 2
	})
	r.Must("resume", id)
	if status := wait(); status != 4 {
		t.Errorf("status %d", status)
	}
	if state := r.State(id); state.Status != specs.StateRunning {
		t.Errorf("after resume: %+v", state)
	}
}

// TestExecWaitsForWhatHolds: before start, neither network rules nor deadline apply, so exec
// is refused. The control has neither, and exec works as in runc.
func TestExecWaitsForWhatHolds(t *testing.T) {
	h := newHeld(t)
	h.Must("create", "--bundle", h.Bundle(forever, cgroup("free")), "free")
	if got := h.Do("exec", "free", "sh", "-c", "exit 4"); got.Status != 4 {
		t.Errorf("the control: %+v", got)
	}
	h.Must("delete", "free")
	for _, annotations := range [][]string{{oci.AnnotationTimeout, "1h"}, {oci.AnnotationNetworkMode, agent.NetworkNone}} {
		h.Must("create", "--bundle", h.Bundle(forever, annotated(annotations...)), "one")
		for _, status := range []specs.ContainerState{specs.StateCreated, "paused"} {
			if status == "paused" {
				h.Must("pause", "one")
			}
			got := h.Do("exec", "--ignore-paused", "--detach", "one", "sleep", "1000")
			if got.Status != 255 || !strings.Contains(got.Err, "start it first") || h.State("one").Status != status {
				t.Errorf("%s, %s: %+v", annotations[0], status, got)
			}
		}
		h.Must("resume", "one")
		if annotations[0] == oci.AnnotationTimeout {
			h.Must("start", "one")
			if got := h.Do("exec", "one", "sh", "-c", "exit 4"); got.Status != 4 {
				t.Errorf("started: %+v", got)
			}
		}
		h.Must("delete", "--force", "one")
	}
}

// TestDescriptorsAreHandedOn: as many as the flag says and no more.
func TestDescriptorsAreHandedOn(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r)
	path := filepath.Join(r.Directory(), "handed")
	if err := os.WriteFile(path, []byte("handed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"run", "--preserve-fds", "1", "--bundle", r.Bundle("[ ! -e /proc/self/fd/4 ] && [ $(cat <&3) = handed ]"), "one"},
		{"exec", "--preserve-fds", "1", id, "sh", "-c", "[ ! -e /proc/self/fd/4 ] && [ $(cat <&3) = handed ]"}} {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if status := background(t, r, []*os.File{file, file}, nil, command...)(); status != 0 {
			t.Errorf("%v: status %d", command, status)
		}
		file.Close()
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if status := background(t, r, []*os.File{file}, nil, "exec", id, "sh", "-c", "[ ! -e /proc/self/fd/3 ]")(); status != 0 {
		t.Error("a descriptor came that was not requested")
	}
}
