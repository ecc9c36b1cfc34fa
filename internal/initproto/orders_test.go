package initproto

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

func valid() *Orders {
	return &Orders{Argv: Strings{"sh"}, Dir: "/", UID: 1000, GID: 1000,
		Rlimits: []Rlimit{{"nofile", 1024, 2048}}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Orders){
		"no command":          func(o *Orders) { o.Argv = nil },
		"empty command":       func(o *Orders) { o.Argv = Strings{""} },
		"relative folder":     func(o *Orders) { o.Dir = "w" },
		"folder not text":     func(o *Orders) { o.Dir = "/\xff" },
		"folder with NUL":     func(o *Orders) { o.Dir = "/\x00" },
		"unchanged id":        func(o *Orders) { o.UID = ^uint32(0) },
		"the init's id":       func(o *Orders) { o.UID = 65533 },
		"group out of range":  func(o *Orders) { o.GID = 70000 },
		"groups out of range": func(o *Orders) { o.Groups = []uint32{4, 65533} },
		"capability":          func(o *Orders) { o.Caps = []string{"chown"} },
		"limit":               func(o *Orders) { o.Rlimits = append(o.Rlimits, Rlimit{Name: "CPU"}) },
		"limit twice":         func(o *Orders) { o.Rlimits = append(o.Rlimits, o.Rlimits[0]) },
		"soft above hard":     func(o *Orders) { o.Rlimits = append(o.Rlimits, Rlimit{"cpu", 2, 1}) },
		"no limit of files":   func(o *Orders) { o.Rlimits = []Rlimit{{Name: "cpu"}} },
		"negative clock":      func(o *Orders) { o.WallClock = -1 },
		"half an instruction": func(o *Orders) { o.Filter = make([]byte, 12) },
		"long filter":         func(o *Orders) { o.Filter = make([]byte, 8*4097) },
		"rules that are lost": func(o *Orders) { o.Confined = true },
		"rules not expected":  func(o *Orders) { o.Ruleset = os.Stdin },
		"negative grace":      func(o *Orders) { o.StopGrace = -1 },
	} {
		o := valid()
		if err := o.Validate(); err != nil {
			t.Fatalf("without the change: %v", err)
		}
		change(o)
		if err := o.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.HasPrefix(err.Error(), "cannot accept orders: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStringsCarryAnyBytes: an environment consists of bytes, not text.
func TestStringsCarryAnyBytes(t *testing.T) {
	t.Parallel()
	item := rapid.Custom(func(t *rapid.T) string {
		return strings.ReplaceAll(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")), "\x00", "")
	})
	rapid.Check(t, func(t *rapid.T) {
		want := valid()
		want.Env = rapid.SliceOf(item).Draw(t, "env")
		data, err := Encode(Message{Orders: want})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data)
		if err != nil || len(got.Orders.Env) != len(want.Env) || (len(want.Env) > 0 && !reflect.DeepEqual(got.Orders.Env, want.Env)) {
			t.Fatalf("got %q, %v", got.Orders.Env, err)
		}
	})
}

// TestLargestCommandFits: the protocol accepts what execve(2) accepts.
func TestLargestCommandFits(t *testing.T) {
	t.Parallel()
	const largest = 6 << 20
	o := valid()
	o.Env = slices.Repeat(Strings{strings.Repeat("x", 128<<10-1)}, largest/(128<<10))
	if _, err := Encode(Message{Orders: o}); err != nil {
		t.Error(err)
	}
}

func TestCapabilityNumbers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"CAP_CHOWN": unix.CAP_CHOWN, "CAP_SETPCAP": unix.CAP_SETPCAP,
		"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_SETFCAP": unix.CAP_SETFCAP, "CAP_BPF": unix.CAP_BPF,
		"CAP_CHECKPOINT_RESTORE": unix.CAP_LAST_CAP} {
		if got, ok := CapabilityNumber(name); !ok || got != want {
			t.Errorf("%s has number %d, want %d", name, got, want)
		}
	}
	if _, ok := CapabilityNumber("CAP_"); ok {
		t.Error("an unknown name has a number")
	}
}
