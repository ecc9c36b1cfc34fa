package initproto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wire fixes every message's format: supervisor and clove-init may come from two builds during
// an upgrade.
var wire = []struct {
	message Message
	text    string
}{
	{Message{Orders: &Orders{Argv: Strings{"sh", "-c", ""}, Env: Strings{"A=\xff"}, Dir: "/w", UID: 1, GID: 2,
		Groups: []uint32{3}, Caps: []string{"CAP_CHOWN"}, Rlimits: []Rlimit{{"core", 0, ^uint64(0)}},
		Terminal: &Terminal{24, 80}, WallClock: time.Second, StopGrace: time.Millisecond,
		Filter: []byte{6, 0, 0, 0, 0, 0, 255, 127}}},
		`{"orders":{"argv":"c2gALWMAAA==","env":"QT3/AA==","dir":"/w","uid":1,"gid":2,"groups":[3],"caps":["CAP_CHOWN"],` +
			`"rlimits":[{"name":"core","soft":0,"hard":18446744073709551615}],"terminal":{"rows":24,"columns":80},` +
			`"wall_clock_ns":1000000000,"stop_grace_ns":1000000,"filter":"BgAAAAAA/38="}}`},
	{Message{Signal: &Signal{Number: unix.SIGINT}}, `{"signal":{"number":2}}`},
	{Message{Stop: &Stop{Grace: time.Second}}, `{"stop":{"grace_ns":1000000000}}`},
	{Message{Extend: &Extend{WallClock: time.Minute}}, `{"extend":{"wall_clock_ns":60000000000}}`},
	{Message{Extended: &Extended{WallClock: 1, Accepted: true}}, `{"extended":{"wall_clock_ns":1,"accepted":true}}`},
	{Message{Entered: &Entered{}}, `{"entered":{}}`},
	{Message{Started: &Started{PID: 2, BootTimeNS: 7, Spent: Spent{CPUNS: 9, CPUUserNS: 5, CPUSystemNS: 4, MemoryPeakBytes: 3}}},
		`{"started":{"pid":2,"boot_time_ns":7,"spent":{"cpu_ns":9,"cpu_user_ns":5,"cpu_system_ns":4,"memory_peak_bytes":3}}}`},
	{Message{ExecFailed: &ExecFailed{Step: "execve", Errno: unix.ENOEXEC, Message: "x", ExitCode: ExitCannotExec}},
		`{"exec_failed":{"step":"execve","errno":8,"message":"x","exit_code":126}}`},
	{Message{Exited: &Exited{Code: -1, Signal: 9, CoreDumped: true, Cause: CauseDeadline, WallNS: 5, ExecutedNS: 4, Leftover: 3}},
		`{"exited":{"code":-1,"signal":9,"core_dumped":true,"cause":"deadline","wall_ns":5,"executed_ns":4,"leftover":3}}`},
}

func TestWireForm(t *testing.T) {
	t.Parallel()
	for _, c := range wire {
		data, err := Encode(c.message)
		if err != nil || string(data) != c.text {
			t.Errorf("Encode: %v\n got %s\nwant %s", err, data, c.text)
		}
		back, err := Decode([]byte(c.text))
		if err != nil || !reflect.DeepEqual(back, c.message) {
			t.Errorf("Decode(%s) = %+v, %v", c.text, back, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Message{
		"nothing":   {},
		"two kinds": {Stop: &Stop{}, Signal: &Signal{}},
		"NUL":       {Orders: &Orders{Argv: Strings{"a\x00b"}}},
		"too long":  {Orders: &Orders{Argv: Strings{strings.Repeat("a", MaxMessageBytes)}}},
	} {
		if data, err := Encode(m); err == nil {
			t.Errorf("%s: encoded to %d bytes", name, len(data))
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":              ``,
		"null":               `null`,
		"no kind":            `{}`,
		"two kinds":          `{"stop":{"grace_ns":1},"signal":{"number":2}}`,
		"unknown kind":       `{"reboot":{}}`,
		"unknown field":      `{"stop":{"grace_ns":1,"hard":true}}`,
		"trailing object":    `{"stop":{"grace_ns":1}}{}`,
		"trailing text":      `{"stop":{"grace_ns":1}} x`,
		"cut":                `{"stop":{"grace_ns":1}`,
		"wrong type":         `{"stop":{"grace_ns":"1s"}}`,
		"strings not base64": `{"orders":{"argv":"%"}}`,
		"strings not ended":  `{"orders":{"argv":"c2g="}}`,
		"strings as list":    `{"orders":{"argv":["sh"]}}`,
	} {
		if m, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s: decoded to %+v", name, m)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range wire {
		f.Add([]byte(c.text))
	}
	f.Add([]byte(`{"stop":null,"stop":{"grace_ns":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			return
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatalf("cannot encode what was decoded: %v", err)
		}
		back, err := Decode(again)
		if err != nil {
			t.Fatalf("cannot decode what was encoded: %v", err)
		}
		if third, err := Encode(back); err != nil || !bytes.Equal(third, again) {
			t.Fatalf("%s became %s and then %s: %v", data, again, third, err)
		}
		if m.Orders != nil {
			_ = m.Orders.Validate() // must not panic
		}
	})
}

func TestReadExit(t *testing.T) {
	t.Parallel()
	line := `{"exited":{"code":3,"wall_ns":1}}` + "\n"
	m, err := ReadExit(strings.NewReader(line))
	if err != nil || m.Exited == nil || m.Exited.Code != 3 {
		t.Errorf("got %+v, %v", m, err)
	}
	if _, err := ReadExit(strings.NewReader("")); err != io.EOF {
		t.Errorf("empty file: %v, want io.EOF", err)
	}
	for name, text := range map[string]string{"a command": `{"stop":{"grace_ns":1}}`, "half": line[:9], "two": line + line} {
		if m, err := ReadExit(strings.NewReader(text)); err == nil || err == io.EOF {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestExecFailedIsAnError(t *testing.T) {
	t.Parallel()
	failure := &ExecFailed{Step: "chdir", Errno: syscall.ENOENT, Message: "/w: gone"}
	if got := failure.Error(); got != "chdir: /w: gone" {
		t.Errorf("text %q", got)
	}
	if err := fmt.Errorf("start: %w", failure); !errors.Is(err, os.ErrNotExist) {
		t.Error("the errno is not to be found in it")
	}
	if err := error(&ExecFailed{Step: "orders"}); errors.Unwrap(err) != nil {
		t.Error("errno 0 was taken for an error")
	}
}
