package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// setIDCalls are answers of the profile that refuses set-user-ID bits. The control: for each
// refusal the plain profile allows the same call.
var setIDCalls = []struct {
	call call
	want string
}{
	{call{name: "chmod", args: [6]uint64{0, 0o755}}, "allow"},
	{call{name: "chmod", args: [6]uint64{0, 0o4755}}, "EPERM"},
	{call{name: "chmod", args: [6]uint64{0, 0o2755}}, "EPERM"},
	{call{name: "chmod", args: [6]uint64{0, 1<<32 | 0o4755}}, "EPERM"},
	{call{name: "chmod", args: [6]uint64{0, 0o1777}}, "allow"},
	{call{name: "fchmod", args: [6]uint64{0, 0o4000}}, "EPERM"},
	{call{name: "fchmodat", args: [6]uint64{0, 0, 0o6755}}, "EPERM"},
	{call{name: "creat", args: [6]uint64{0, 0o4755}}, "EPERM"},
	{call{name: "creat", args: [6]uint64{0, 0o644}}, "allow"},
	{call{name: "open", args: [6]uint64{0, unix.O_RDONLY, 0o4755}}, "allow"}, // no mode is read
	{call{name: "open", args: [6]uint64{0, unix.O_CREAT | unix.O_WRONLY, 0o4755}}, "EPERM"},
	{call{name: "openat", args: [6]uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o644}}, "allow"},
	{call{name: "openat", args: [6]uint64{0, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}}, "EPERM"},
	{call{name: "openat", args: [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o2755}}, "EPERM"},
	{call{name: "openat", args: [6]uint64{0, 0, unix.O_DIRECTORY, 0o2755}}, "allow"},
}

func TestWithoutSetID(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Standard, Strict} {
		p, err := ProfileWithout(name, Without{SetID: true})
		if err != nil {
			t.Fatal(err)
		}
		f, err := compile(p)
		if err != nil {
			t.Fatal(err)
		}
		plain := compileBuiltin(t, name)
		for _, row := range setIDCalls {
			if got := f.run(t, row.call); got != row.want {
				t.Errorf("%s: %v: %s, want %s", name, row.call, got, row.want)
			}
			if got := plain.run(t, row.call); got != "allow" {
				t.Errorf("control: %s itself answers %v with %s", name, row.call, got)
			}
		}
		if got := f.run(t, call{name: "openat2"}); got != "ENOSYS" {
			t.Errorf("%s: openat2: %s, want ENOSYS", name, got)
		}
	}
	if p, err := ProfileWithout(Unconfined, Without{SetID: true}); len(p.Syscalls) != 2 || err != nil {
		t.Errorf("unconfined: %v, %v", p, err)
	}
	if _, err := ProfileWithout("nosuch", Without{SetID: true}); err == nil {
		t.Error("an unknown profile was found")
	}
}

func TestMknodMakesNoSetIDFile(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Standard)
	for mode, want := range map[uint64]string{unix.S_IFREG | 0o4755: "EPERM", unix.S_IFREG | 0o755: "allow"} {
		if got := f.run(t, call{name: "mknodat", args: [6]uint64{0, 0, mode}}); got != want {
			t.Errorf("mknodat %#o: %s, want %s", mode, got, want)
		}
	}
}
