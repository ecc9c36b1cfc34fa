package redact

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const (
	testKey   = "sk-key-of-the-test"
	redacted  = "[key]"
	valueMost = 8 << 10
)

var holds = holdBytes(valueMost)

func keyless(s *Secret) *Redactor { return s.NewRedactor(Options{Instead: redacted, Most: valueMost}) }

// filter is a redactor, or what stands for one in a control.
type filter interface {
	Next(p []byte) [][]byte
	Rest() []byte
}

// beginnings holds back exactly what may become the key.
type beginnings struct{ key, held []byte }

func (b *beginnings) Next(p []byte) [][]byte {
	all := bytes.ReplaceAll(append(b.held, p...), b.key, []byte(redacted))
	keep := 0
	for n := range min(len(b.key), len(all)+1) {
		if bytes.HasSuffix(all, b.key[:n]) {
			keep = n
		}
	}
	b.held = bytes.Clone(all[len(all)-keep:])
	return [][]byte{all[:len(all)-keep]}
}

func (b *beginnings) Rest() []byte { return b.held }

// pieces holds everything back, and replaces also the longest part that begins the key.
type pieces struct{ key, held []byte }

func (s *pieces) Next(p []byte) [][]byte {
	s.held = append(s.held, p...)
	return nil
}

func (s *pieces) Rest() []byte {
	for n := len(s.key); n > 3; n-- {
		if bytes.Contains(s.held, s.key[:n]) {
			return bytes.ReplaceAll(s.held, s.key[:n], []byte("*"))
		}
	}
	return s.held
}

// seen is what an agent sees of a text that its provider repeats in two writes: how long the
// parts are.
func seen(f filter, text, behind string) (parts []int) {
	for _, written := range []string{text, behind} {
		length := 0
		for _, part := range f.Next([]byte(written)) {
			length += len(part)
		}
		parts = append(parts, length)
	}
	return append(parts, len(f.Rest()))
}

// readOff finds a key out one character at a time, from the begin that all keys of a provider
// have: of the right guess less is seen than of each other.
func readOff(known string, length int, guess func(text string) []int) string {
	const characters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	for len(known) < length {
		var least []int
		next := ""
		for _, c := range characters {
			text := known + string(c)
			switch look := guess(text); {
			case least == nil || slices.Compare(look, least) < 0:
				least, next = look, text
			case slices.Equal(look, least):
				next = ""
			}
		}
		if next == "" {
			return known
		}
		known = next
	}
	return known
}

// An agent that has its provider repeat guesses finds nothing of the key. The controls: a
// filter that holds back what begins the key, and one that replaces parts of it.
func TestAKeyCannotBeReadOff(t *testing.T) {
	t.Parallel()
	for _, around := range []struct{ name, before, behind string }{{"document", `{"error":"`, `"}`}, {"events", "data: ", "\n\n"}} {
		attack := func(f func() filter) string {
			return readOff(testKey[:3], len(testKey), func(text string) []int { return seen(f(), around.before+"."+text, "!"+around.behind) })
		}
		key := []byte(testKey)
		if got := attack(func() filter { return &beginnings{key: key} }); got != testKey {
			t.Errorf("control: %s: %q is read off", around.name, got)
		}
		if got := attack(func() filter { return &pieces{key: key} }); got != testKey {
			t.Errorf("control: %s: %q is read off parts", around.name, got)
		}
		s := New(testKey)
		if got := attack(func() filter { return keyless(s) }); got != testKey[:3] {
			t.Errorf("%s: %q is read off", around.name, got)
		}
		// Which parts of the key are there is not seen either: each stays as it is.
		for from := range len(testKey) {
			for to := from + 1; to <= len(testKey) && to-from < len(testKey); to++ {
				r, text := keyless(s), around.before+testKey[from:to]+around.behind
				if got := bytes.Join(append(r.Next([]byte(text)), r.Rest()), nil); string(got) != text {
					t.Errorf("%s: %s", around.name, got)
				}
			}
		}
	}
}

// borders are where the parts of a text end, and behind how many bytes each of them came.
func borders(key, text string, split func(left int) int) (all []string) {
	r := keyless(New(key))
	came, passed := 0, 0
	for came < len(text) {
		n := min(split(len(text)-came), len(text)-came)
		for _, part := range r.Next([]byte(text[came : came+n])) {
			passed += len(part)
			all = append(all, fmt.Sprint(passed, " behind ", came+n))
		}
		came += n
	}
	return append(all, fmt.Sprint(passed+len(r.Rest())))
}

// The same bytes pass in the same parts, and as soon, whatever the key and its length are, in
// any split. How they are split changes only when a part passes.
func TestPartsDoNotDependOnTheKey(t *testing.T) {
	t.Parallel()
	keys := []string{testKey, "sk-key-of-the-rest", "sk-key-of-the-toast-which-is-longer-" + strings.Repeat("0123456789", 300), ""}
	begins := func(n int) string { // of the keys, and of their base64
		key := keys[n%3]
		return key[:n%(len(key)-1)] + base64.StdEncoding.EncodeToString([]byte(key[:n%17]))
	}
	document, events, long := `{"a":"`, "", "data: "
	for n := range 1000 {
		document += begins(n) + " "
		events += "data: " + begins(n) + "\n" + []string{"\n", "\r\n", "data: more\n\n", ": a comment\n\n"}[n%4]
	}
	long += document + "\n\n" + events[:5000]
	document = document[:min(len(document), blockBytes*2+holds)]
	events = events[:min(len(events), blockBytes+holds)]
	random := rand.New(rand.NewPCG(1, 2))
	splits := map[string]func(int) int{
		"whole":    func(left int) int { return left },
		"of 1":     func(int) int { return 1 },
		"of 32 Ki": func(int) int { return 32 << 10 },
		"any":      func(int) int { return 1 + random.IntN(5000) },
	}
	for name, text := range map[string]string{"document": document, "events": events, "a long event": long, "spaces": strings.Repeat(" ", 2*blockBytes+holds) + "data: a\n\n"} {
		if len(text) < blockBytes+holds {
			t.Fatalf("control: %s has %d bytes", name, len(text))
		}
		var first []string // ends of the parts in the first split
		for splitName, split := range splits {
			sizes := []int{}
			for left := len(text); left > 0; left -= sizes[len(sizes)-1] {
				sizes = append(sizes, min(split(left), left))
			}
			var want []string
			for _, key := range keys {
				next := 0
				got := borders(key, text, func(int) int { next++; return sizes[next-1] })
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s: the parts depend on the key", name, splitName)
				}
			}
			var ends []string
			for _, border := range want {
				end, _, _ := strings.Cut(border, " ")
				ends = append(ends, end)
			}
			if first == nil {
				first = ends
			}
			if !slices.Equal(ends, first) {
				t.Errorf("%s, %s: the parts depend on the split: %d and %d", name, splitName, len(ends), len(first))
			}
			if len(ends) < 3 {
				t.Errorf("control: %s has %d parts", name, len(ends))
			}
		}
	}
}

// escaped writes each byte as an escape.
func escaped(form, text string) string {
	var all strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&all, form, c)
	}
	return all.String()
}

// written are the ways in which a text is written.
func written(key string) map[string]string {
	all := map[string]string{
		"as it is": key, "in a URL": url.QueryEscape(key), "escaped in a URL": escaped("%%%02X", key), "in small letters": escaped("%%%02x", key),
		"in JSON": strings.NewReplacer(`\`, `\\`, `"`, `\"`, "/", `\/`).Replace(key), "escaped in JSON": escaped(`\u%04x`, key), "in part": key[:5] + escaped(`\u%04X`, key[5:]),
	}
	for offset := range 3 {
		for name, encoding := range map[string]*base64.Encoding{"standard": base64.StdEncoding, "URL": base64.RawURLEncoding} {
			text := encoding.EncodeToString([]byte("u:x"[:offset] + key + "?~"[:offset]))
			all[fmt.Sprint("base64 ", name, offset)] = text
			all[fmt.Sprint("base64 in a URL ", name, offset)] = url.QueryEscape(text)
			all[fmt.Sprint("base64 in JSON ", name, offset)] = strings.ReplaceAll(text, "/", `\/`)
			all[fmt.Sprint("base64 escaped ", name, offset)] = escaped(`\u%04x`, text)
		}
	}
	return all
}

// The whole key is replaced however it is written, and wherever a block ends. One that differs
// in its first or last character is another key.
func TestAKeyIsFoundHoweverItIsWritten(t *testing.T) {
	t.Parallel()
	for _, key := range []string{testKey, "??>>~~/+\\\"%41%-", "12345678", strings.Repeat("k/", valueMost/2)} {
		other := map[string]map[string]string{"first": written("~" + key[1:]), "last": written(key[:len(key)-1] + "~")}
		s := New(key)
		for name, text := range written(key) {
			for _, at := range []int{0, blockBytes - 1} {
				r := keyless(s)
				all := bytes.Join(append(r.Next([]byte(`{"a":"`+strings.Repeat(".", at)+`"`+text+`" and so on`)), r.Rest()), nil)
				if !bytes.Contains(all, []byte(redacted)) || len(all) > at+80 {
					t.Errorf("%.20q %s at %d: %.100q", key, name, at, all[min(at, len(all)):])
				}
			}
			for place, written := range other {
				if got := s.Find([]byte(written[name])); len(got) > 0 {
					t.Errorf("%.20q %s: another %s character is %v of %.100q", key, name, place, got, written[name])
				}
			}
		}
	}
}

// What an answer has beside the key is not changed, wherever a key begins.
func TestOnlyTheKeyIsReplaced(t *testing.T) {
	t.Parallel()
	r := keyless(New(testKey))
	var text, want strings.Builder
	text.WriteString("{")
	want.WriteString("{")
	for n := range 9000 {
		fmt.Fprint(&text, n, testKey, testKey[:n%len(testKey)])
		fmt.Fprint(&want, n, redacted, testKey[:n%len(testKey)])
	}
	var got []byte
	for p := range slices.Chunk([]byte(text.String()), 997) {
		got = append(got, bytes.Join(r.Next(p), nil)...)
	}
	if got = append(got, r.Rest()...); string(got) != want.String() || !r.Found {
		t.Errorf("%d bytes, not %d", len(got), want.Len())
	}
}

// Where lines pass, each does when its end has come, with whatever is in it; a value in a line that comes in parts is found, and which
// bytes are held back does not depend on how a value begins.
func TestLinesPass(t *testing.T) {
	t.Parallel()
	lines := func() *Redactor { return New(testKey).NewRedactor(Options{Most: len(testKey), Lines: true}) }
	r := lines()
	for _, row := range []struct{ comes, passes string }{
		{"a line\nand", "a line\n"}, {" more", ""}, {" of it\n", "and more of it\n"}, {"x " + testKey[:5], ""}, {testKey[5:] + " y\n", "x " + strings.Repeat("*", len(testKey)) + " y\n"},
		{testKey[:9] + "\n", testKey[:9] + "\n"}, {"the end", ""},
	} {
		if got := string(bytes.Join(r.Next([]byte(row.comes)), nil)); got != row.passes {
			t.Errorf("%q: %q, not %q", row.comes, got, row.passes)
		}
	}
	if got := string(r.Rest()); got != "the end" || !r.Found {
		t.Errorf("%q", got)
	}
	for from := range len(testKey) {
		for _, guess := range []string{testKey[:from], strings.Repeat("x", from)} {
			r := lines()
			if got := r.Next([]byte("a\n" + guess)); len(got) != 1 || string(got[0]) != "a\n" {
				t.Errorf("%q: %q", guess, got)
			}
		}
	}
}

// Each place of a text is looked at once, whatever its length is.
func TestEachPlaceIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"a-value-of-the-test", "a-long-value-of-the-test-0123456789-abcdefghijkl"} {
		placed(t, value)
	}
}

func placed(t *testing.T, value string) {
	s := New(value)
	for before := range 40 {
		for behind := range 40 {
			encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + value + strings.Repeat("y", behind)))
			if all := s.Find([]byte(encoded)); len(all) != 1 {
				t.Fatalf("%q: %v", encoded, all)
			}
			text := strings.Repeat("x", before) + value + strings.Repeat("y", behind)
			if all := s.Find([]byte(text)); len(all) != 1 || all[0] != (Span{before, before + len(value)}) {
				t.Fatalf("%q: %v", text, all)
			}
		}
	}
	if all := s.Find([]byte(value[1:])); len(all) != 0 {
		t.Errorf("control: %v", all)
	}
}

// BenchmarkFind looks through an answer without escapes, and one with those of JSON.
func BenchmarkFind(b *testing.B) {
	for name, c := range map[string]struct{ value, line string }{
		"short": {"a-value-of-a-benchmark", "abcdefghijklmno\n"}, "long": {"ghp_a-value-of-the-benchmark-0123456789-", "abcdefghijklmno\n"}, "json": {"ghp_a-value-of-the-benchmark-0123456789-", `{"a":"b\n","c"},`},
	} {
		s, text := New(c.value), []byte(strings.Repeat(c.line, 2048))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if len(s.Find(text)) != 0 {
					b.Fatal("found")
				}
			}
		})
	}
}
