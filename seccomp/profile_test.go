package seccomp

import (
	"reflect"
	"strings"
	"testing"
)

func TestProfileByName(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		p, err := Profile(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if (p == nil) != (name == Unconfined) {
			t.Errorf("%s: %v", name, p)
		}
	}
	_, err := Profile("lenient")
	if err == nil || !strings.Contains(err.Error(), `"lenient"`) || !strings.Contains(err.Error(), Strict) {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestProfileIsAFreshCopy(t *testing.T) {
	t.Parallel()
	first := mustProfile(t, Standard)
	for i := range first.Syscalls {
		first.Syscalls[i].Names[0] = "changed"
		for j := range first.Syscalls[i].Args {
			first.Syscalls[i].Args[j].Value = 1
		}
	}
	*first.DefaultErrnoRet = 0
	if err := check(mustProfile(t, Standard)); err != nil {
		t.Error(err)
	}
	if reflect.DeepEqual(first, mustProfile(t, Standard)) {
		t.Error("a change to one copy shows in the next")
	}
}

func TestOnlyTheNativeArchitecture(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Standard, Strict} {
		if p := mustProfile(t, name); len(p.Architectures) != 1 {
			t.Errorf("%s: %v", name, p.Architectures)
		}
	}
}

func TestExplainBuiltins(t *testing.T) {
	t.Parallel()
	tests := []struct{ profile, name, want string }{
		{Unconfined, "mount", "allowed: there is no filter"},
		{Standard, "read", "allowed"},
		{Standard, "mount", "refused with EPERM because an agent changes no mounts"},
		{Standard, "clone3", "refused with ENOSYS because its flags are behind a pointer, where a filter cannot look for new namespaces; programs fall back to clone"},
		{Standard, "socketpair", "allowed for AF_UNIX; otherwise refused with EPERM because no other family that an agent may use has pairs"},
		{Standard, "prctl", "allowed for every option but PR_SET_SECCOMP; otherwise refused with EPERM or EINVAL because programs in the kernel are the host's, and no limit holds their number"},
		{Standard, "memfd_create", "allowed for pages of ordinary size, and transparent huge ones; otherwise refused with EPERM because the host reserved its huge pages for somebody, and no memory limit counts them"},
		{Strict, "memfd_create", "refused with EPERM because code that runs should be a file that can be seen"},
		{Strict, "mount", "refused with EPERM because an agent changes no mounts"},
		{Standard, "brand_new", "refused with EPERM because the profile does not name it (with ENOSYS if it is newer than every call that the profile names)"},
	}
	for _, test := range tests {
		p, err := Profile(test.profile)
		if err != nil {
			t.Fatal(err)
		}
		if got := Explain(p, test.name); got != test.want {
			t.Errorf("%s, %s:\n got %q\nwant %q", test.profile, test.name, got, test.want)
		}
	}
}

// What Explain says in words is what the program does.
func TestExplainAgreesWithTheFilter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Standard, Strict} {
		p, f := mustProfile(t, name), compileBuiltin(t, name)
		for number := range uint32(335) {
			syscall := nameOf(number)
			if syscall == "" {
				continue
			}
			line, answer := Explain(p, syscall), f.run(t, call{number: number})
			agrees := strings.HasPrefix(line, "allowed for") ||
				line == "allowed" && answer == "allow" ||
				strings.HasPrefix(line, "refused with "+answer+" because ")
			if !agrees || strings.Contains(line, "\n") {
				t.Errorf("%s: %s: the filter says %s, the line %q", name, syscall, answer, line)
			}
		}
	}
}
