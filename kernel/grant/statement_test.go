package grant

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// key is the same in each run, so that the statement below is too.
func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func signed(t *testing.T) []byte {
	t.Helper()
	g := given(t, "state:/notes/<é>&\"\\:rw", func(r *Request) {
		r.Expires, r.Uses, r.Reason = now.Add(time.Hour+time.Millisecond), 3, "« to <note> »"
	})
	statement, err := Sign(key(1), g, now.Add(time.Minute+time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return statement
}

// The documented form: what other programs parse does not change by accident.
const wantLine = `{"created":"2026-11-23T12:00:00Z","expires":"2026-11-23T13:00:00.001Z","format":"clove.run/grant/v1","giver":"uid:0","holder":"0123456789abcdef","id":"root",` +
	`"key":"34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e","reason":"« to <note> »","scope":"state:/notes/<é>&\"\\:rw","signed":"2026-11-23T12:01:00Z","uses_left":3}`

func TestStatementsAreVerified(t *testing.T) {
	t.Parallel()
	statement := signed(t)
	line, _, _ := strings.Cut(string(statement), "\n")
	if line != wantLine {
		t.Errorf("got  %s\nwant %s", line, wantLine)
	}
	s, err := VerifyStatement(public(key(1)), statement)
	if err != nil || s.ID != "root" || s.Scope != "state:/notes/<é>&\"\\:rw" || s.Uses != 3 || !s.Signed.Equal(now.Add(time.Minute)) || s.Key != KeyID(public(key(1))) {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Parse(s.Scope); err != nil {
		t.Errorf("its scope: %v", err)
	}
	bare, err := Sign(key(1), given(t, "tool:*", nil), now)
	if err != nil || strings.Contains(string(bare), "expires") || !strings.Contains(string(bare), `"uses_left":-1}`) {
		t.Errorf("without bounds: %s, %v", bare, err)
	}
}

// TestChangedStatementsAreRefused: each byte counts, and there is one spelling.
func TestChangedStatementsAreRefused(t *testing.T) {
	t.Parallel()
	statement := signed(t)
	refused := func(name string, key ed25519.PublicKey, changed []byte) {
		if s, err := VerifyStatement(key, changed); agent.KindOf(err) != agent.KindInvalid || s != (Statement{}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for i := range statement {
		for _, bit := range []byte{1, 0x20, 0x80} {
			changed := bytes.Clone(statement)
			changed[i] ^= bit
			refused("a flipped bit in "+string(changed), public(key(1)), changed)
		}
		refused("a part", public(key(1)), statement[:i])
	}
	refused("another key", public(key(2)), statement)
	refused("no key", nil, statement)
	refused("a third line", public(key(1)), append(bytes.Clone(statement), '\n'))
	refused("a line feed in the signature", public(key(1)), append(bytes.Clone(statement[:len(statement)-10]), append([]byte("\n"), statement[len(statement)-10:]...)...))
	refused("megabytes", public(key(1)), bytes.Repeat([]byte("a"), 1<<20))
}

// TestOtherSignedTextIsNoStatement: the key also signs other things, and JSON has more than
// one spelling.
func TestOtherSignedTextIsNoStatement(t *testing.T) {
	t.Parallel()
	line, _, _ := strings.Cut(string(signed(t)), "\n")
	for _, text := range []string{"", "checkpoint", "{}", "null", line + " ", " " + line, strings.Replace(line, "grant/v1", "grant/v2", 1),
		strings.Replace(line, `"id":"root"`, `"id":"root","id":"root"`, 1), strings.Replace(line, `"id":"root"`, `"ID":"root"`, 1), strings.Replace(line, `"id":"root"`, `"id":"\u0072oot"`, 1),
		strings.Replace(line, `{`, `{"a":1,`, 1), strings.Replace(line, KeyID(public(key(1))), KeyID(public(key(2))), 1), strings.Replace(line, "12:00:00Z", "12:00:00+00:00", 1)} {
		signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key(1), []byte(text)))
		if s, err := VerifyStatement(public(key(1)), []byte(text+"\n"+signature+"\n")); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%q is a statement: %+v, %v", text, s, err)
		}
	}
}

func TestDamagedGrantsAreNotSigned(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Grant){
		"pattern": func(g *Grant) { g.Pattern = "a b" }, "reason": func(g *Grant) { g.Reason = "a\u2028b" }, "id": func(g *Grant) { g.ID = "" }, "parent": func(g *Grant) { g.Parent = "\b" },
	} {
		g := given(t, "tool:x", nil)
		change(&g)
		if statement, err := Sign(key(1), g, now); err == nil {
			t.Errorf("%s: %s", name, statement)
		}
	}
	if statement, err := Sign(nil, given(t, "tool:x", nil), now); err == nil {
		t.Errorf("without a key: %s", statement)
	}
}

// TestTheLineIsCanonical encodes it again by another way: a map, which encoding/json sorts.
func TestTheLineIsCanonical(t *testing.T) {
	t.Parallel()
	line, _, _ := strings.Cut(string(signed(t)), "\n")
	var members map[string]any
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&members); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	encoder := json.NewEncoder(&again)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(members); err != nil || again.String() != line+"\n" {
		t.Errorf("got  %swant %s, %v", again.String(), line, err)
	}
}

// TestOpenSSLVerifiesStatements with the commands in the documentation.
func TestOpenSSLVerifiesStatements(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	der, err := x509.MarshalPKIXPublicKey(public(key(1)))
	if err != nil {
		t.Fatal(err)
	}
	pemText := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for name, data := range map[string][]byte{"KEY.pem": pemText, "good": signed(t), "bad": bytes.Replace(signed(t), []byte(`:3}`), []byte(`:4}`), 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"good", "bad"} { // one after the other: they share the files
		script := `set -e
sed -n 1p FILE | tr -d '\n' >line; sed -n 2p FILE | base64 -d >signature
openssl pkeyutl -verify -pubin -inkey KEY.pem -rawin -in line -sigfile signature`
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(script, "FILE", file))
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if verified := strings.Contains(string(out), "Verified Successfully"); verified != (err == nil) || verified != (file == "good") {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}
