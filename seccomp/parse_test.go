package seccomp

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	moby "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"pgregory.net/rapid"
)

// document wraps rules into a profile that refuses by default.
func document(rules ...string) string {
	return `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[` + strings.Join(rules, ",") + `]}`
}

func dockersOwn(t testing.TB) string {
	t.Helper()
	text, err := json.Marshal(moby.DefaultProfile())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseDockersDefault(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(dockersOwn(t)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"read": "allow", "ptrace": "allow", "mount": "EPERM", "bpf": "EPERM", "clone3": "ENOSYS",
	} {
		if got := f.run(t, call{name: name}); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestParseResolvesConditions(t *testing.T) {
	t.Parallel()
	here, elsewhere := runtime.GOARCH, "s390x"
	tests := []struct {
		rule    string
		allowed bool
	}{
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW"}`, true},
		{`{"name":"mount","action":"SCMP_ACT_ALLOW","comment":"old form"}`, true},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}}`, false},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","excludes":{"caps":["CAP_SYS_ADMIN"]}}`, true},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["` + here + `"]}}`, true},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["` + elsewhere + `"]}}`, false},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","excludes":{"arches":["` + here + `"]}}`, false},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"3.0"}}`, true},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"200.0"}}`, false},
		{`{"names":["mount"],"action":"SCMP_ACT_ALLOW","excludes":{"minKernel":"3.0"}}`, false},
	}
	for _, test := range tests {
		p, err := Parse([]byte(document(test.rule)))
		if err != nil {
			t.Errorf("%s: %v", test.rule, err)
			continue
		}
		f, err := compile(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.run(t, call{name: "mount"}); (got == "allow") != test.allowed {
			t.Errorf("%s: %s", test.rule, got)
		}
	}
}

// refusedDocuments are refused with an error that contains the words.
var refusedDocuments = []struct{ document, words string }{
	{``, "not a profile"},
	{`[]`, "not a profile"},
	{`{}`, "defaultAction is missing"},
	{`{"defaultAction":"SCMP_ACT_ERRNO"} x`, "invalid character"},
	{`{"syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}`, "defaultAction is missing"},
	{`{"defaultAction":"SCMP_ACT_ERRNO","syscals":[]}`, `unknown field "syscals"`},
	{document(`{"names":["read"],"acton":"SCMP_ACT_ALLOW"}`), `unknown field "acton"`},
	{document(`null`), "rule 1 is null"},
	{document(`{"action":"SCMP_ACT_ALLOW"}`), "rule 1 names no system call"},
	{document(`{"names":[""],"action":"SCMP_ACT_ALLOW"}`), "empty name"},
	{document(`{"name":"read","names":["write"],"action":"SCMP_ACT_ALLOW"}`), "both"},
	{document(`{"names":["read"]}`), `read: action "" is not known`},
	{document(`{"names":["read"],"action":"ALLOW"}`), `action "ALLOW" is not known`},
	{document(`{"names":["read"],"action":"SCMP_ACT_TRACE"}`), "an agent that traces itself"},
	{document(`{"names":["read"],"action":"SCMP_ACT_NOTIFY"}`), "listener"},
	{`{"defaultAction":"SCMP_ACT_ERRNO","listenerPath":"/run/x","syscalls":[]}`, "listener"},
	{document(`{"names":["read"],"action":"SCMP_ACT_ALLOW","errnoRet":1}`), "error number goes with"},
	{document(`{"names":["read"],"action":"SCMP_ACT_ERRNO","errnoRet":65536}`), "above 4095"},
	{`{"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":70000}`, "above 4095"},
	{`{"defaultAction":"SCMP_ACT_ERRNO","architectures":["X86"]}`, `architecture "X86"`},
	{`{"defaultAction":"SCMP_ACT_ERRNO","architectures":["SCMP_ARCH_X86"],"archMap":[{"architecture":"SCMP_ARCH_X86"}]}`, "archMap"},
	{`{"defaultAction":"SCMP_ACT_ERRNO","flags":["LOG"]}`, `flag "LOG"`},
	{document(`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":6,"value":1,"op":"SCMP_CMP_EQ"}]}`), "index 6"},
	{document(`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"=="}]}`), `operator "=="`},
	{document(`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"SCMP_CMP_GE"},{"index":0,"value":3,"op":"SCMP_CMP_LE"}]}`),
		"socket: one rule compares argument 0 twice"},
	{document(`{"names":["ioctl"],"action":"SCMP_ACT_ALLOW"}`,
		`{"names":["ioctl"],"action":"SCMP_ACT_ERRNO","args":[{"index":1,"value":21522,"op":"SCMP_CMP_EQ"}]}`),
		"ioctl: two rules with different actions"},
	{document(`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":16,"op":"SCMP_CMP_EQ"}]}`,
		`{"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":22,"args":[{"index":2,"value":9,"op":"SCMP_CMP_EQ"}]}`),
		"socket: two rules with different actions"},
	{document(`{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"six"}}`), "kernel version"},
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range refusedDocuments {
		p, err := Parse([]byte(test.document))
		if err == nil {
			t.Errorf("%.120s: accepted as %+v", test.document, p)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "cannot use seccomp profile: ") || !strings.Contains(text, test.words) {
			t.Errorf("%.120s: %v, want %q", test.document, err, test.words)
		}
	}
}

func TestParseRefusesWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	spaces := strings.Repeat(" ", MaxDocumentBytes)
	if _, err := Parse([]byte(document() + spaces)); err == nil || !strings.Contains(err.Error(), "limit is 1048576") {
		t.Errorf("a long document: %v", err)
	}
	var names []string
	for i := range maxComparisons + 1 {
		names = append(names, fmt.Sprintf("call%d", i))
	}
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{{Names: names, Action: specs.ActAllow}}}
	if err := check(p); err == nil || !strings.Contains(err.Error(), "limit is 4096") {
		t.Errorf("many names: %v", err)
	}
}

// overlapping returns n rules for each of calls, which compare arguments with ">".
func overlapping(calls, n int, arguments uint) *specs.LinuxSeccomp {
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}
	for i := range calls * n {
		var args []specs.LinuxSeccompArg
		for index := range arguments {
			args = append(args, specs.LinuxSeccompArg{Index: index, Value: 1<<40 + uint64(i), Op: specs.OpGreaterThan})
		}
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{nameOf(uint32(i / n))}, Action: specs.ActAllow, Args: args})
	}
	return p
}

// The bounds keep programs far below the largest length that fits into 16 bits.
func TestLargestDocumentsMakeNoCutProgram(t *testing.T) {
	t.Parallel()
	for _, p := range []*specs.LinuxSeccomp{overlapping(1, 45, 2), overlapping(20, 10, 2)} {
		if err := check(p); err != nil {
			t.Fatal(err)
		}
		f, err := compile(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.instructions) > 20000 {
			t.Errorf("%d instructions", len(f.instructions))
		}
	}
	for _, p := range []*specs.LinuxSeccomp{overlapping(1, 46, 2), overlapping(21, 10, 2), overlapping(1, 16, 3), overlapping(1, 4, 6)} {
		if err := check(p); err == nil || !strings.Contains(err.Error(), "too many rules compare") {
			t.Errorf("%d rules of %d arguments: %v", len(p.Syscalls), len(p.Syscalls[0].Args), err)
		}
	}
}

// Two actions for one call are refused because the narrower rule would have no effect.
func TestTwoActionsControl(t *testing.T) {
	t.Parallel()
	sti := []specs.LinuxSeccompArg{masked(1, int32Mask, 0x5412)}
	errno := uint(13)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"ioctl"}, Action: specs.ActAllow},
		{Names: []string{"ioctl"}, Action: specs.ActErrno, ErrnoRet: &errno, Args: sti},
	}}
	f, err := compile(p)
	if err != nil {
		t.Logf("libseccomp refuses it: %v", err)
	} else if got := f.run(t, call{name: "ioctl", args: [6]uint64{0, 0x5412}}); got != "allow" {
		t.Errorf("TIOCSTI: %s: libseccomp orders rules by now, check could be relaxed", got)
	}
	if check(p) == nil {
		t.Error("check lets it pass")
	}
}

// Podman's default profile has rules of this kind: refused for one protocol, allowed for all
// others.
func TestRulesThatExcludeEachOtherMayDiffer(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(document(
		`{"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":22,"args":[{"index":0,"value":16,"op":"SCMP_CMP_EQ"},{"index":2,"value":9,"op":"SCMP_CMP_EQ"}]}`,
		`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":2,"value":9,"op":"SCMP_CMP_NE"}]}`,
		`{"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":16,"op":"SCMP_CMP_NE"}]}`)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[[6]uint64]string{{16, 3, 9}: "EINVAL", {16, 3, 0}: "allow", {2, 1, 9}: "allow", {2, 1, 0}: "allow"} {
		if got := f.run(t, call{name: "socket", args: args}); got != want {
			t.Errorf("socket%v: %s, want %s", args, got, want)
		}
	}
}

// Rules that are accepted as exclusive have no value in common.
func TestExclusiveRulesShareNoValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Uint64Range(0, 7)
		draw := func(label string) specs.LinuxSeccompArg {
			return specs.LinuxSeccompArg{Value: small.Draw(t, label), ValueTwo: small.Draw(t, label),
				Op: rapid.SampledFrom(operators).Draw(t, label)}
		}
		a, b := draw("a"), draw("b")
		value := rapid.Uint64Range(0, 15).Draw(t, "value")
		if contradict(a, b) && holds(a, value) && holds(b, value) {
			t.Fatalf("%+v and %+v both hold for %d", a, b, value)
		}
	})
}

// FuzzParse: every accepted document passes the check.
func FuzzParse(f *testing.F) {
	f.Add([]byte(dockersOwn(f)))
	for _, test := range refusedDocuments {
		f.Add([]byte(test.document))
	}
	f.Add([]byte(document(`{"names":["ioctl"],"action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":255,"valueTwo":3,"op":"SCMP_CMP_MASKED_EQ"}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if p == nil {
			t.Fatal("a document became no filter")
		}
		if err := check(p); err != nil {
			t.Fatal(err)
		}
	})
}
