package seccomp

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func TestLeastNamesTheGroups(t *testing.T) {
	t.Parallel()
	needs, err := Least([]Use{{Call: "read"}, {Call: "openat"}}, Without{})
	if err != nil || needs.Filter != nil || needs.Within != Minimal || len(needs.Groups) != 0 {
		t.Errorf("what minimal allows: %+v, %v", needs, err)
	}
	needs, err = Least([]Use{{Call: "wait4"}, {Call: "pipe2"}}, Without{})
	if err != nil || needs.Within != Strict || len(needs.Groups) != 2 || needs.Groups[0].Name != "pipes" || needs.Groups[1].Name != "processes" {
		t.Fatalf("%+v, %v", needs, err)
	}
	profile, err := Parse(needs.Filter)
	if err != nil {
		t.Fatal(err)
	}
	for call, allowed := range map[string]bool{"wait4": true, "vfork": true, "pipe": true, "splice": true, "socket": false, "ptrace": false, "epoll_wait": false} {
		if Decide(profile, call, [6]uint64{}).Allowed() != allowed {
			t.Errorf("%s: allowed %t", call, !allowed)
		}
	}
	// A process without new namespaces, as strict allows it.
	if !Decide(profile, "clone", [6]uint64{uint64(unix.SIGCHLD)}).Allowed() || Decide(profile, "clone", [6]uint64{unix.CLONE_NEWUSER}).Allowed() {
		t.Error("clone is not as in strict")
	}
	if got := Decide(profile, "clone3", [6]uint64{}); got.Errno != unix.ENOSYS {
		t.Errorf("clone3: %s", got)
	}
}

func TestLeastTakesSocketsOfTheNetworkFromStandardOnly(t *testing.T) {
	t.Parallel()
	inet := Use{Call: "socket", Args: [6]uint64{unix.AF_INET, unix.SOCK_STREAM, 0}}
	needs, err := Least([]Use{inet}, Without{})
	if err != nil || needs.Within != Standard {
		t.Fatalf("%+v, %v", needs.Within, err)
	}
	profile, err := Parse(needs.Filter)
	if err != nil {
		t.Fatal(err)
	}
	if !Decide(profile, "socket", inet.Args).Allowed() || !Decide(profile, "connect", [6]uint64{}).Allowed() {
		t.Error("the used call is refused")
	}
	if Decide(profile, "socket", [6]uint64{unix.AF_PACKET}).Allowed() {
		t.Error("a family that standard refuses is allowed")
	}
}

// TestLeastKeepsSetIDRefused: a file's filter replaces the built-in one, which refuses set-id
// bits to an agent that writes into a host directory.
func TestLeastKeepsSetIDRefused(t *testing.T) {
	t.Parallel()
	mode := [6]uint64{0, 0o755}
	for without, refused := range map[bool]bool{false: false, true: true} {
		needs, err := Least([]Use{{Call: "chmod", Args: mode}}, Without{SetID: without})
		if err != nil {
			t.Fatal(err)
		}
		profile, err := Parse(needs.Filter)
		if err != nil {
			t.Fatal(err)
		}
		if !Decide(profile, "chmod", mode).Allowed() || Decide(profile, "chmod", [6]uint64{0, 0o4755}).Allowed() == refused {
			t.Errorf("without set-id %t: %s", without, Decide(profile, "chmod", [6]uint64{0, 0o4755}))
		}
	}
}

// TestLeastIsEnoughAndNoMore: a profile that is learned from allowed calls lets them pass, and
// lets no call pass that the first profile refuses.
func TestLeastIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	names := calls()
	rapid.Check(t, func(t *rapid.T) {
		of := rapid.SampledFrom([]string{Standard, Strict, Minimal}).Draw(t, "profile")
		bound, err := Profile(of)
		if err != nil {
			t.Fatal(err)
		}
		arg := rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.OneOf(rapid.Uint64Range(0, 64), rapid.SampledFrom([]uint64{unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCSTI, uint64(unix.SIGCHLD), unix.CLONE_THREAD, unix.CLONE_NEWUSER})).Draw(t, "value")
		})
		draw := func(label string) Use {
			return Use{rapid.SampledFrom(names).Draw(t, label), [6]uint64{arg.Draw(t, "0"), arg.Draw(t, "1"), arg.Draw(t, "2")}}
		}
		var uses []Use
		for range rapid.IntRange(0, 12).Draw(t, "calls") {
			if u := draw("call"); Decide(bound, u.Call, u.Args).Allowed() {
				uses = append(uses, u)
			}
		}
		needs, err := Least(uses, Without{})
		if err != nil {
			t.Fatal(err)
		}
		learned, err := Profile(Minimal)
		if needs.Filter != nil {
			learned, err = Parse(needs.Filter)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range uses {
			if !Decide(learned, u.Call, u.Args).Allowed() {
				t.Errorf("%v was made and is refused", u)
			}
		}
		for range 20 {
			if u := draw("other"); Decide(learned, u.Call, u.Args).Allowed() && !Decide(bound, u.Call, u.Args).Allowed() {
				t.Errorf("%v is allowed, and %s refuses it", u, of)
			}
		}
		if within := slices.Index(Names(), needs.Within); within < slices.Index(Names(), of) {
			t.Errorf("%s would do, and within is %s", of, needs.Within)
		}
	})
}

func TestNarrower(t *testing.T) {
	t.Parallel()
	profiles := map[string]int{Standard: 0, Strict: 1, Minimal: 2}
	for a, wide := range profiles {
		for b, narrow := range profiles {
			for _, call := range []string{"ioctl", "clone", "prctl", "socket"} {
				base, _ := Profile(a)
				other, _ := Profile(b)
				got := Narrower(base, other, call)
				if wide <= narrow && !got && call != "socket" {
					t.Errorf("%s of %s is within %s", call, b, a)
				}
				if call == "ioctl" && wide > narrow && got {
					t.Errorf("%s of %s is not within %s", call, b, a)
				}
			}
		}
	}
}
