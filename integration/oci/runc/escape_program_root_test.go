//go:build root

package runc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/testhost"
)

// leaked are the numbers of descriptors that may be a folder of the host.
const leaked = 14

// climb is a path from any folder of the host to the host's secret. From a folder of the
// container it ends at the container's root.
func climb(s *site) string { return strings.Repeat("../", 12) + s.path("victim/secret")[1:] }

// TestCVE_2024_21626: a descriptor of the host that the runtime left open is the container's
// working directory, from which a path leads to the host's files.
func TestCVE_2024_21626(t *testing.T) {
	newArena(t).run(until2023, escape{attack: func(s *site) bool {
		through := false
		for fd := 3; fd < leaked && !through; fd++ {
			b := plain(s, "read", climb(s))
			b.process().Cwd = fmt.Sprintf("/proc/self/fd/%d", fd)
			b.save()
			through = strings.Contains(s.run().out, `"ok":true`)
		}
		return through
	}})
}

// TestCVE_2024_21626_Exec: the same for a process that is added by exec.
func TestCVE_2024_21626_Exec(t *testing.T) {
	newArena(t).run(until2023, escape{attack: func(s *site) bool {
		plain(s, "world").save()
		in, input := s.pipe()
		defer input.Close()
		out := s.create("output")
		defer out.Close()
		defer s.call("delete", "--force", s.id)
		if got := s.callWith(streams{in: in, out: out}, "run", "--detach", s.id); got.status != 0 {
			t.Fatalf("%+v", got)
		}
		in.Close()
		through := false
		for fd := 3; fd < leaked && !through; fd++ {
			got := s.call("exec", "--cwd", fmt.Sprintf("/proc/self/fd/%d", fd), s.id, "/probe", "read", climb(s))
			through = strings.Contains(got.out, `"ok":true`)
		}
		return through
	}})
}

// attacker is a container whose process waits for another program to appear.
type attacker struct {
	*site
	output *bufio.Scanner
	seen   bool // it has reported that it sees the other program
}

// attacker starts one, with every capability that helps.
func (a *arena) attacker(name string) *attacker {
	a.t.Helper()
	s := a.site(tested(a.t), name)
	b := plain(s, "overwrite", "attacked", "60")
	all := []string{"CAP_SYS_PTRACE", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_CHOWN", "CAP_SETUID", "CAP_SYS_CHROOT"}
	b.process().Capabilities = &specs.LinuxCapabilities{Bounding: all, Permitted: all, Effective: all}
	b.save()
	reading, writing := s.pipe()
	null, err := os.Open(os.DevNull)
	if err != nil {
		a.t.Fatal(err)
	}
	defer null.Close()
	if got := s.callWith(streams{in: null, out: writing}, "run", "--detach", "--pid-file", s.path("pid"), s.id); got.status != 0 {
		a.t.Fatalf("%+v", got)
	}
	writing.Close()
	a.t.Cleanup(func() { s.call("delete", "--force", s.id); reading.Close() })
	x := &attacker{site: s, output: bufio.NewScanner(reading)}
	x.expect("ready")
	return x
}

// line returns the attacker's next line.
func (x *attacker) line() string {
	x.t.Helper()
	if !x.output.Scan() {
		x.t.Fatalf("the attacker ended: %v", x.output.Err())
	}
	return x.output.Text()
}

func (x *attacker) expect(want string) {
	x.t.Helper()
	if got := x.line(); got != want {
		x.t.Fatalf("the attacker says %q, not %q", got, want)
	}
}

// sees waits until the attacker sees the other program.
func (x *attacker) sees() {
	x.t.Helper()
	if !x.seen {
		x.expect("seen")
		x.seen = true
	}
}

// copied returns a copy of a program, which an attack may overwrite.
func (a *arena) copied(program string) string {
	a.t.Helper()
	text, err := os.ReadFile(program)
	if err != nil {
		a.t.Fatal(err)
	}
	path := filepath.Join(a.dir, filepath.Base(program))
	if err := os.WriteFile(path, text, 0o755); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// spoiled reports whether the file has changed since it was copied.
func (a *arena) spoiled(path, from string) bool {
	a.t.Helper()
	now, err := os.ReadFile(path)
	was, err2 := os.ReadFile(from)
	if err != nil || err2 != nil {
		a.t.Fatal(err, err2)
	}
	return string(now) != string(was)
}

// TestCVE_2019_5736: a process that sees the process that makes or enters a container sees
// that program's file on the host, and writes to it as soon as it is not running.
//
// No runc of that time can be built from the module proxy, so the control is a program that
// enters the container in the old way: by executing its own file.
func TestCVE_2019_5736(t *testing.T) {
	a := newArena(t)
	probe := testhost.Binary(t, "clove-probe")
	victim := a.copied(probe)
	x := a.attacker("control")
	join := exec.Command(victim, "join", strings.TrimSpace(x.read("pid")))
	input, err := join.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := join.Start(); err != nil {
		t.Fatal(err)
	}
	x.expect("seen")
	input.Close()
	_ = join.Wait() // its program may have been overwritten
	if got := x.line(); !strings.Contains(got, `"ok":true`) || !a.spoiled(victim, probe) {
		t.Fatalf("control: the program was not overwritten: %s", got)
	}

	program := a.copied(tested(t).program)
	for name, enter := range map[string]func(x *attacker, own *site){
		"exec":                   (*attacker).byExec,
		"exec of its own":        (*attacker).byExecOfItself,
		"create in the same pid": (*attacker).byCreate,
	} {
		t.Run(name, func(t *testing.T) {
			x := a.attacker(strings.ReplaceAll(name, " ", "-"))
			x.runtime.program = program
			own := a.site(runtime{"clove-oci", program}, "other-"+strings.ReplaceAll(name, " ", "-"))
			enter(x, own)
			x.sees()
			if got := x.line(); strings.Contains(got, `"ok":true`) {
				t.Errorf("the attack wrote: %s", got)
			} else {
				t.Log(got)
			}
			if a.spoiled(program, tested(t).program) {
				t.Fatal("clove-oci's own file is overwritten")
			}
		})
	}
}

// byExec runs a process in the container for as long as it takes to be seen.
func (x *attacker) byExec(*site) {
	for range raceTries {
		x.call("exec", x.id, "/probe", "ids")
	}
}

// byExecOfItself makes the runtime execute its own file in the container, as the first attack
// of this kind did with a script.
func (x *attacker) byExecOfItself(*site) {
	x.write("rootfs/script", "#!/proc/self/exe\n")
	for range raceTries {
		x.call("exec", x.id, "/script", "state", "none")
		x.call("exec", x.id, "/proc/self/exe", "state", "none")
	}
}

// byCreate makes a second container in the attacker's pid namespace: until its start, its
// first process is the runtime itself.
func (x *attacker) byCreate(own *site) {
	b := plain(own, "ids")
	b.namespace(specs.PIDNamespace, filepath.Join("/proc", strings.TrimSpace(x.read("pid")), "ns/pid"))
	b.save()
	created := own.call("create", own.id)
	defer own.call("delete", "--force", own.id)
	if created.status != 0 {
		own.t.Fatalf("%+v", created)
	}
	x.sees() // after the start there is no time to see it
	own.call("start", own.id)
}
