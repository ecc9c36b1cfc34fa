package screen

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
)

// filtered writes the parts, and returns what reached the terminal.
func filtered(clipboard bool, parts ...string) string {
	var to bytes.Buffer
	w := New(clipboard).To(&to)
	for _, part := range parts {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			panic(err)
		}
	}
	return to.String()
}

// what is left out, and what is left of it.
var left = map[string]string{
	"a\x1b]52;c;aGk=\ab":                                  "ab", // the clipboard is set
	"a\x1b]52;c;?\x1b\\b":                                 "ab", // and asked for
	"a\x1b]52;c;aGk=\u009cb":                              "ab",
	"a\u009d52;c;aGk=\ab":                                 "ab", // C1 in UTF-8
	"a\x9d52;c;aGk=\x9cb":                                 "ab", // and as a byte
	"a\x1b]0052;c;aGk=\ab":                                "ab",
	"a\x1b\n]5\x002;c;aGk=\ab":                            "ab", // controls inside of a sequence
	"a\x1b]52;c;aGk=\x18b":                                "ab",
	"\x1b]52;c;aGk=\x1b[31mred":                           "\x1b[31mred", // broken off by the next sequence
	"\x1b]52;c;aGk=\x1b]52;c;eA==\ab":                     "b",
	"\x1b]52;" + strings.Repeat("A", 1<<16) + "\ab":       "b",
	"\x1b]" + strings.Repeat("0", 1<<12) + "52;c;aGk=\ab": "b",
	"\x1bPtmux;\x1b\x1b]52;c;aGk=\a\x1b\\b":               "\x1bPtmux;\x1b\x1b\\b", // through a multiplexer
	"a\x1b[21tb":                                          "ab",                    // the title of the window
	"a\x1b[20tb":                                          "ab",                    // and of the icon
	"a\x1b[021;0tb":                                       "ab",
	"a\x1b[21:1tb":                                        "ab",
	"a\x1b[2\r1tb":                                        "ab",
	"a\u009b21tb":                                         "ab",
	"a\x9b21tb":                                           "ab",
	"a\x1bP$qm\x1b\\b":                                    "ab", // DECRQSS
	"a\x1bP1$q\"p\u009cb":                                 "ab",
	"a\u0090$q r\x1b\\b":                                  "ab",
	"a\x05b":                                              "ab", // answerback
	"a\x1b\x05[31mb":                                      "a\x1b[31mb",
}

// Sequences that an agent must not send are left out, wherever their bytes are cut.
func TestWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	for from, want := range left {
		if got := filtered(false, from); got != want {
			t.Errorf("%q: %q, want %q", from, got, want)
		}
		for i := 1; i < min(len(from), 64); i++ {
			if got := filtered(false, from[:i], from[i:]); got != want {
				t.Errorf("%q cut at %d: %q, want %q", from, i, got, want)
			}
		}
		if got := filtered(false, strings.Split(from, "")...); got != want {
			t.Errorf("%q by characters: %q", from, got)
		}
	}
}

// programs are what full-screen programs write, from their terminfo and their sources.
var programs = map[string]string{
	"vim":   "\x1b[?1049h\x1b[22;0;0t\x1b[>4;2m\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[1;24r\x1b[?12h\x1b[?12l\x1b[22;2t\x1b[22;1t\x1b[27m\x1b[23m\x1b[29m\x1b[m\x1b[H\x1b[2J\x1b[?25l\x1b[2;1H▽\x1b[6n\x1b[2;1H  \x1b[3;1H\x1bPzz\x1b\\\x1b[0%m\x1b[6n\x1b[3;1H\x1b[>c\x1b]10;?\a\x1b]11;?\a\x1bP+q436f;6b75\x1b\\\x1b]2;a.go (~/src) - VIM\a\x1b[23;2t\x1b[23;0;0t\x1b[?1049l",
	"tmux":  "\x1b[?1049h\x1b[22;0;0t\x1b(B\x1b[m\x1b[?1l\x1b>\x1b[H\x1b[2J\x1b[?12l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1006l\x1b[c\x1b[>c\x1b[>q\x1b]112\a\x1b[1;24r\x1b)0\x1b[18t\x1b[14t\x1bPtmux;\x1b\x1b]0;inner\a\x1b\\\x0e\x0f\x1b]7;file:///tmp\x1b\\",
	"agent": "\x1b]0;✳ Writing tests\a\x1b]8;;https://example.com/a?b=52;c\x1b\\link\x1b]8;;\x1b\\\x1b[38;2;215;119;87m╭──╮\x1b[39m\x1b[2K\x1b[1A\x1b[?2026h\x1b[?2026l\x1b]9;4;1;52\a\x1b]133;A\a\x1b[>1u\x1b[<u\x1b]1337;File=inline=1:UTE9PQ==\a\x1b_Gf=100;AAAA\x1b\\\x1bPq#0;2;0;0;0~~@@vv\x1b\\\x1b]520;x\a\x1b]5;0;?\a\x1b[21m\x1b[210t\x1b[?21t\x1b[21 t\x1b[8;21;20t",
	"text":  "naïve – śpiewać ďábel 日本語 🦀 \xc3\x28 \xff\xfe \xe2\x82 \x7f\b\t\r\n\v\f\x00\x01 a\\b ]52;c; [21t",
}

// All else passes byte for byte, wherever it is cut. What Rest holds is the beginning of a
// sequence.
func TestProgramsLookTheSame(t *testing.T) {
	t.Parallel()
	for name, text := range programs {
		if got := filtered(false, text); got != text {
			t.Errorf("%s:\n%q, want\n%q", name, got, text)
		}
		for i := range len(text) {
			if got := filtered(false, text[:i], text[i:]); got != text {
				t.Errorf("%s cut at %d: %q", name, i, got)
			}
		}
	}
	if const52 := "\x1b]52;c;aGk=\a"; filtered(true, const52) != const52 {
		t.Error("with --clipboard OSC 52 passes")
	}
	if filtered(true, "\x1b[21t\x05\x1bP$qm\x1b\\") != "" {
		t.Error("with --clipboard nothing else passes")
	}
}

// A sequence that begins on one stream and ends on the other is one for the terminal.
func TestBothStreamsAreOneTerminal(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	s := New(false)
	out, err := s.To(&to), s.To(&to)
	for i, part := range []string{"\x1b\x1b", "]5", "2;c;", "aGk=\ab"} {
		if _, err := map[bool]interface{ Write([]byte) (int, error) }{true: out, false: err}[i%2 == 0].Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if to.String() != "\x1bb" {
		t.Errorf("%q", to.String())
	}
}

// Any bytes give the same output, wherever they are cut, and no sequence that is left out is
// in the output of another pass.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	const alphabet = "\x1b\x1b\x1b[]P52210;$qt\a\\\x05\x18\x9b\x9d\x90\xc2\xc5 a"
	for range 50_000 {
		text := make([]byte, 24)
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		at := random.IntN(len(text))
		whole, cut := filtered(false, string(text)), filtered(false, string(text[:at]), string(text[at:]))
		if whole != cut {
			t.Fatalf("%q cut at %d: %q, not %q", text, at, cut, whole)
		}
		if again := filtered(false, whole); again != whole && !strings.HasPrefix(whole, again) {
			t.Fatalf("%q: %q, and again %q", text, whole, again)
		}
	}
}
