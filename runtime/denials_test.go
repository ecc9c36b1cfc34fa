package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// However many targets there are: each kind keeps a bounded number, counts the rest as one,
// and a kind that is full takes no space of another.
func TestDenialsAreBounded(t *testing.T) {
	t.Parallel()
	reported := 0
	all := newDenials("0123456789abcdef", func(agent.Denial, string, string) { reported++ })
	refuse := func(kind, target string) {
		if !all.count(kind, target) {
			all.add(agent.Denial{Kind: kind, Target: target, Program: strings.Repeat("p", 5000)}, "", "")
		}
	}
	for i := range 1000 {
		refuse(agent.DenialFile, fmt.Sprint("/file/", i))
	}
	long := strings.Repeat("x", 5000)
	for range 3 {
		refuse(agent.DenialCall, "mount")
		refuse(agent.DenialCall, long)
	}
	all.close(func(func(*store.Store) error) error { return nil })
	list := all.list()
	counts, sum := map[string]int64{}, int64(0)
	for _, d := range list {
		counts[d.Target] = d.Count
		sum += d.Count
		if len(d.Target) > maxTarget || len(d.Program) > maxTarget || d.Time.IsZero() {
			t.Errorf("%+v", d)
		}
	}
	if len(list) != maxOfKind+1+2 || counts[otherTargets] != 1000-maxOfKind || counts["mount"] != 3 || counts[long[:maxTarget]] != 3 || sum != 1006 {
		t.Errorf("%d denials: %d others, mount %d", len(list), counts[otherTargets], counts["mount"])
	}
	if reported != len(list) {
		t.Errorf("reported %d of %d", reported, len(list))
	}
}

// What programs only ask for makes no line, and is counted all the same. The controls are refusals
// beside it.
func TestOptionalRefusalsAreQuiet(t *testing.T) {
	t.Parallel()
	var told []string
	all := newDenials("0123456789abcdef", func(d agent.Denial, _, _ string) { told = append(told, d.Target) })
	calls := map[string]string{"CAP_CHOWN": "fchown", "CAP_FOWNER": "fchown"}
	for _, d := range []agent.Denial{
		{Kind: agent.DenialCall, Target: "io_uring_setup"}, {Kind: agent.DenialCall, Target: "bpf"},
		{Kind: agent.DenialFile, Target: "/usr/lib/python3/__pycache__/os.cpython-311.pyc.1"}, {Kind: agent.DenialFile, Target: "/mod/__pycache__"}, {Kind: agent.DenialFile, Target: "/mod/my__pycache__"},
		{Kind: agent.DenialFile, Target: "/etc/locale.alias"}, {Kind: agent.DenialFile, Target: "/workspace/etc/locale.alias"},
		{Kind: agent.DenialFile, Target: "/etc/python3.11/sitecustomize.py"}, {Kind: agent.DenialExec, Target: "/etc/locale.alias"},
		{Kind: agent.DenialCapability, Target: "CAP_CHOWN"}, {Kind: agent.DenialCapability, Target: "CAP_FOWNER"},
	} {
		if call := calls[d.Target]; call != "" {
			d.Call = &agent.DeniedCall{Name: call}
		}
		all.add(d, "", "")
	}
	shared := agent.Denial{Kind: agent.DenialFile, Target: "/repo/.git/shared-objects/ca/85", Call: &agent.DeniedCall{Name: "utimensat"}}
	if !isOptional(shared) {
		t.Error("git reports that it may not touch the host's objects")
	}
	shared.Call = &agent.DeniedCall{Name: "openat"}
	if isOptional(shared) {
		t.Error("a write to the host's objects is refused quietly")
	}
	if isOptional(agent.Denial{Kind: agent.DenialCapability, Target: "CAP_CHOWN", Call: &agent.DeniedCall{Name: "fchownat"}}) {
		t.Error("chown(1) is refused quietly")
	}
	all.close(func(func(*store.Store) error) error { return nil })
	want := []string{"bpf", "/mod/my__pycache__", "/workspace/etc/locale.alias", "/etc/locale.alias", "CAP_FOWNER"}
	if !slices.Equal(told, want) || len(all.list()) != 11 {
		t.Errorf("told %q, kept %d", told, len(all.list()))
	}
}

// The first denials become events, those of the network as well, and each is stored once.
func TestDenialsBecomeEvents(t *testing.T) {
	t.Parallel()
	all := newDenials("0123456789abcdef", nil)
	writes := 0
	with := func(func(*store.Store) error) error { writes++; return nil }
	for i := range 2 * maxNoted {
		all.note(agent.Denial{Kind: agent.DenialNetwork, Target: fmt.Sprint("tcp://", i)})
	}
	all.add(agent.Denial{Kind: agent.DenialCall, Target: "mount"}, "", "")
	if len(all.events) != maxNoted || all.events[0].Detail != "network tcp://0" || all.events[0].Kind != agent.RunDenied || len(all.news) != 1 {
		t.Errorf("%d events, %+v", len(all.events), all.events[0])
	}
	all.storeAside(with)
	all.close(with)
	if writes != 1 {
		t.Errorf("%d writes", writes)
	}
}
