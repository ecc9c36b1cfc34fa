package seccomp

import (
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// Decide answers from the rules what the compiled program answers.
func TestDecideAgreesWithTheProgram(t *testing.T) {
	t.Parallel()
	profiles := map[string]*specs.LinuxSeccomp{}
	for _, name := range filtered {
		profiles[name] = mustProfile(t, name)
	}
	docker, err := Docker()
	if err != nil {
		t.Fatal(err)
	}
	profiles["docker"] = docker
	for name, text := range map[string]string{
		"refuses some":  `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["fork","ioctl"],"action":"SCMP_ACT_ERRNO"},{"names":["socket"],"action":"SCMP_ACT_KILL_PROCESS","args":[{"index":0,"value":2,"op":"SCMP_CMP_GE"}]}]}`,
		"kills others":  `{"defaultAction":"SCMP_ACT_KILL_PROCESS","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"},{"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":97}]}`,
		"traps and log": `{"defaultAction":"SCMP_ACT_TRAP","syscalls":[{"names":["clone","faccessat2"],"action":"SCMP_ACT_LOG","args":[{"index":0,"value":40,"op":"SCMP_CMP_LT"},{"index":1,"value":3,"op":"SCMP_CMP_NE"}]}]}`,
	} {
		if profiles[name], err = Parse([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, profile := range profiles {
		program, err := compile(profile)
		if err != nil {
			t.Fatal(err)
		}
		check := func(t failer, c call) {
			if got, want := Decide(profile, c.name, c.args).String(), program.run(t, c); got != want {
				t.Fatalf("%s: %v: %s, the program says %s", name, c, got, want)
			}
		}
		for _, name := range calls() {
			check(t, call{name: name})
			check(t, call{name: name, args: [6]uint64{high, high, high, high, high, high}})
		}
		rapid.Check(t, func(t *rapid.T) { check(t, drawCall(t)) })
		for _, row := range kernelCalls {
			check(t, call{name: row.name, args: row.args})
		}
	}
}

func TestDecideWithoutAFilterOrACall(t *testing.T) {
	t.Parallel()
	if d := Decide(nil, "mount", [6]uint64{}); !d.Allowed() || d.String() != "allow" {
		t.Errorf("unconfined: %v", d)
	}
	for _, name := range []string{"no_such_call", "socketcall"} {
		for _, profile := range []*specs.LinuxSeccomp{nil, mustProfile(t, Standard), {DefaultAction: specs.ActAllow}} {
			if d := Decide(profile, name, [6]uint64{}); d.Errno != unix.ENOSYS {
				t.Errorf("%s: %v", name, d)
			}
		}
	}
}
