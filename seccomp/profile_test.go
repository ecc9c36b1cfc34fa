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
		if p == nil {
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
	for _, name := range filtered {
		if p := mustProfile(t, name); len(p.Architectures) != 1 {
			t.Errorf("%s: %v", name, p.Architectures)
		}
	}
}
