package rootfs

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"
)

func TestChangeString(t *testing.T) {
	t.Parallel()
	tests := map[string]Change{
		`A /workspace/x`:                             {Kind: Added, Path: "/workspace/x", Type: TypeFile},
		`C /workspace/ü.txt`:                         {Kind: Changed, Path: "/workspace/ü.txt", Type: TypeFile},
		`D /workspace/d`:                             {Kind: Deleted, Path: "/workspace/d", Type: TypeDir},
		`D /workspace/l`:                             {Kind: Deleted, Path: "/workspace/l", Type: TypeSymlink, Target: "x"},
		`A /w/l -> ../x`:                             {Kind: Added, Path: "/w/l", Type: TypeSymlink, Target: "../x"},
		`C /w/l -> "a b" (was a dir)`:                {Kind: Changed, Path: "/w/l", Type: TypeSymlink, Target: "a b", Was: TypeDir},
		`C /r/refs/heads/x -> 4b825d`:                {Kind: Changed, Path: "/r/refs/heads/x", Type: TypeRef, Target: "4b825d"},
		`C /r/refs/heads/x (refused: it is gone)`:    {Kind: Changed, Path: "/r/refs/heads/x", Type: TypeRef, Refused: "it is gone"},
		`A /w/p (refused: a fifo)`:                   {Kind: Added, Path: "/w/p", Type: TypeFIFO, Refused: "a fifo"},
		`A "/w/x -> y"`:                              {Kind: Added, Path: "/w/x -> y", Type: TypeFile},
		`A "/w/\x1b[2J"`:                             {Kind: Added, Path: "/w/\x1b[2J", Type: TypeFile},
		`A "/w/a\nD /etc"`:                           {Kind: Added, Path: "/w/a\nD /etc", Type: TypeFile},
		`A "/w/\u202etxt.exe"`:                       {Kind: Added, Path: "/w/\u202etxt.exe", Type: TypeFile},
		`A "/w/\xff"`:                                {Kind: Added, Path: "/w/\xff", Type: TypeFile},
		`A "/w/\u009b31m"`:                           {Kind: Added, Path: "/w/\u009b31m", Type: TypeFile},
		`A "\"/w\""`:                                 {Kind: Added, Path: `"/w"`, Type: TypeFile},
		`? /w/x`:                                     {Kind: "other", Path: "/w/x"},
		`A "" -> ""`:                                 {Kind: Added, Type: TypeSymlink},
		`C /w/f (was a symlink) (refused: conflict)`: {Kind: Changed, Path: "/w/f", Type: TypeFile, Was: TypeSymlink, Refused: "conflict"},
	}
	for want, c := range tests {
		if got := c.String(); got != want {
			t.Errorf("%+v: got %s, want %s", c, got, want)
		}
	}
}

// No name moves the cursor, and no two names are printed alike.
func TestPrintable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOf(rapid.Byte()).Draw(t, "name"))
		other := rapid.String().Draw(t, "other")
		for _, r := range printable(name) + printable(other) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q prints %q", name, r)
			}
		}
		if name != other && printable(name) == printable(other) {
			t.Fatalf("%q and %q print the same", name, other)
		}
		if !strings.HasPrefix(printable(name), `"`) && strings.ContainsAny(name, " \"\\'") {
			t.Fatalf("%q is not quoted", name)
		}
	})
}

func TestUpperAsJSON(t *testing.T) {
	t.Parallel()
	tests := map[string]any{
		`{"dir":"/i/u","prefix":"/","since":"2026-01-02T03:04:05Z"}`: Upper{Dir: "/i/u", Prefix: "/", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		`{"dir":"/i/u","prefix":"/usr","lower":"/usr"}`:              Upper{Dir: "/i/u", Prefix: "/usr", Lower: "/usr"},
	}
	for want, value := range tests {
		got, err := json.Marshal(value)
		if err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
}
