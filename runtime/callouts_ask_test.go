package runtime

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

var askKey = []byte("0123456789abcdef0123456789abcdef")

// proofOf is the proof that a command of the owner's makes, written without the code that checks it.
func proofOf(key []byte, lines ...string) string {
	sum := hmac.New(sha256.New, key)
	for _, line := range lines {
		sum.Write([]byte(line + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func questionAt(expires time.Time) api.Approval {
	return api.Approval{ID: "0123456789abcdef", Run: "fedcba9876543210", Digest: "sha256:seen", Expires: expires}
}

// A reply counts with the proof of exactly this question and this answer. The control is the right one.
func TestOnlyAProofAnswers(t *testing.T) {
	t.Parallel()
	a := questionAt(time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC))
	const expires = "2026-01-02T03:04:05.0000006Z"
	right := proofOf(askKey, "clove-approval-1", a.ID, a.Digest, expires, "allow")
	p, err := ApprovalReply{Answer: "allow", HMAC: right}.read(a, askKey)
	if err != nil || !p.Allow || !p.Command || p.ID != a.ID || p.Digest != a.Digest || p.Fault != "" {
		t.Fatalf("control: %+v, %v", p, err)
	}
	for what, r := range map[string]ApprovalReply{
		"no proof":         {Answer: "allow"},
		"no digits":        {Answer: "allow", HMAC: "yes"},
		"a part of it":     {Answer: "allow", HMAC: right[:62]},
		"another key":      {Answer: "allow", HMAC: proofOf([]byte("another key that is long enough."), "clove-approval-1", a.ID, a.Digest, expires, "allow")},
		"another answer":   {Answer: "once", HMAC: right},
		"another digest":   {Answer: "allow", HMAC: proofOf(askKey, "clove-approval-1", a.ID, "sha256:other", expires, "allow")},
		"another question": {Answer: "allow", HMAC: proofOf(askKey, "clove-approval-1", "0000000000000000", a.Digest, expires, "allow")},
		"another expiry":   {Answer: "allow", HMAC: proofOf(askKey, "clove-approval-1", a.ID, a.Digest, "2027-01-02T03:04:05Z", "allow")},
		"no answer":        {Answer: "maybe", HMAC: proofOf(askKey, "clove-approval-1", a.ID, a.Digest, expires, "maybe")},
		"no time":          {Answer: "for ever", HMAC: proofOf(askKey, "clove-approval-1", a.ID, a.Digest, expires, "for ever")},
	} {
		if p, err := r.read(a, askKey); err == nil {
			t.Errorf("%s: %+v", what, p)
		}
	}
	for answer, want := range map[string]api.ApprovalRespondParams{"deny": {}, "once": {Allow: true, Once: true}, "for 1h": {Allow: true, ForMS: 3_600_000}} {
		p, err := ApprovalReply{Answer: answer, HMAC: proofOf(askKey, "clove-approval-1", a.ID, a.Digest, expires, answer)}.read(a, askKey)
		if err != nil || p.Allow != want.Allow || p.Once != want.Once || p.ForMS != want.ForMS {
			t.Errorf("%s: %+v, %v", answer, p, err)
		}
	}
}

// A key is a file of the owner's that others cannot read. The control is one.
func TestTheKeyIsItsOwners(t *testing.T) {
	t.Parallel()
	dir, owner := t.TempDir(), agent.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sound := file("sound", string(askKey)+"\n", 0o600)
	if key, err := readOwn(owner, sound); err != nil || string(key) != string(askKey) {
		t.Fatalf("control: %q, %v", key, err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(sound, link); err != nil {
		t.Fatal(err)
	}
	for what, path := range map[string]string{
		"others read it": file("open", string(askKey), 0o644), "too short": file("short", "short", 0o600), "too long": file("long", strings.Repeat("k", askKeyMost+1), 0o600),
		"a link": link, "a directory": dir, "none": filepath.Join(dir, "none"), "a device": "/dev/zero",
	} {
		if key, err := readOwn(owner, path); err == nil {
			t.Errorf("%s: %q", what, key)
		}
	}
	if key, err := readOwn(agent.Owner{UID: owner.UID + 1}, sound); err == nil {
		t.Errorf("another user's: %q", key)
	}
}

// What a command says reaches the service: an answer with its proof, a fault where that is wrong, and nothing without output.
func TestTheAnswerOfACommandIsBrought(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("it reads the key as its owner")
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, askKey, 0o600); err != nil {
		t.Fatal(err)
	}
	a := questionAt(time.Now().Add(time.Hour).Truncate(time.Second))
	good, err := json.Marshal(ApprovalReply{Answer: "deny", HMAC: proofOf(askKey, strings.Split(strings.TrimSuffix(ApprovalText(a, "deny"), "\n"), "\n")...)})
	if err != nil {
		t.Fatal(err)
	}
	c := newCallouts(agent.Spec{ID: a.Run, Kernel: agent.Kernel{OnAskKey: key}}, IO{}, nil, nil)
	for text, fault := range map[string]string{string(good): "", `{"answer":"allow"}`: "no hmac", "yes": "it is not", string(good) + "{}": "it is not", `{"answer":"allow","hmac":"00","more":1}`: "it is not"} {
		var got api.ApprovalRespondParams
		if err := c.answer(a, []byte(text), func(_ context.Context, p api.ApprovalRespondParams) error { got = p; return nil }); err != nil {
			t.Fatal(err)
		}
		if !got.Command || got.ID != a.ID || (got.Fault == "") != (fault == "") || !strings.Contains(got.Fault, fault) || got.Fault != "" && got.Allow {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// A key that the agent is shown behind a link is refused. The control is the comparison of the paths alone.
func TestTheKeyIsNotBehindALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shown, links := filepath.Join(dir, "shown"), filepath.Join(dir, "links")
	if err := errors.Join(os.Mkdir(shown, 0o700), os.Symlink(shown, links), os.WriteFile(filepath.Join(shown, "key"), askKey, 0o600), os.WriteFile(filepath.Join(dir, "key"), askKey, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ bind, key string }{{shown, filepath.Join(links, "key")}, {links, filepath.Join(shown, "key")}} {
		var spec agent.Spec
		spec.Files.Binds = []agent.Bind{{Source: row.bind, Target: "/data"}}
		if dir := spec.ShownFrom(row.key); dir != "" {
			t.Errorf("control: %s", dir)
		}
		if err := checkHidden(spec, row.key); err == nil || !strings.Contains(err.Error(), "the agent could read it") {
			t.Errorf("%+v: %v", row, err)
		}
		if err := checkHidden(spec, filepath.Join(dir, "key")); err != nil {
			t.Error(err)
		}
	}
}
