package outer

import (
	"bytes"
	"testing"

	"clove.run/clove/egress/swap/link"
)

// authentication is the text of an authentication, as the inner side makes it.
func authentication(q link.Sign) []byte {
	text := append(appendString(nil, q.Session), 50)
	method := "publickey"
	if q.Bound {
		method = "publickey-hostbound-v00@openssh.com"
	}
	for _, part := range []string{q.User, "ssh-connection", method} {
		text = appendString(text, []byte(part))
	}
	text = appendString(appendString(append(text, 1), []byte(q.Algorithm)), q.Key)
	if q.Bound {
		text = appendString(text, q.HostKey)
	}
	return text
}

func bindMessage(hostKey, id, proof string, forwarded byte) []byte {
	var m []byte
	for _, part := range []string{"session-bind@openssh.com", hostKey, id, proof} {
		m = appendString(m, []byte(part))
	}
	return append(m, forwarded)
}

// Whatever is taken for an authentication is written again with the same bytes from its values, so that no text has two meanings.
func FuzzSSHMessages(f *testing.F) {
	sound := link.Sign{Key: []byte("key"), Session: []byte("id"), HostKey: []byte("host"), User: "git", Algorithm: "ssh-ed25519"}
	bound := sound
	bound.Bound = true
	for _, q := range []link.Sign{sound, bound} {
		f.Add(bindMessage("host", "id", "proof", 0), append(appendString(appendString(nil, q.Key), authentication(q)), 0, 0, 0, 0))
	}
	f.Add(bindMessage("host", "id", "proof", 1), []byte("SSHSIG"))
	f.Fuzz(func(t *testing.T, bind, sign []byte) {
		var s session
		refused := s.bind(bind)
		q, not := s.request(sign)
		if not != nil {
			return
		}
		if refused != nil || len(q.Session) == 0 && s.id == nil {
			t.Errorf("%+v is signed in %+v", q, s)
		}
		if r := (reader{rest: sign}); !bytes.Equal(r.text(), q.Key) || !bytes.Equal(r.text(), authentication(q)) {
			t.Errorf("%q is read as %+v", sign, q)
		}
	})
}

// What is sound is taken: the control of what the fuzzer finds nothing in.
func TestSSHMessages(t *testing.T) {
	t.Parallel()
	var s session
	q := link.Sign{Key: []byte("key"), Session: []byte("id"), User: "git", Algorithm: "ssh-ed25519"}
	m := append(appendString(appendString(nil, q.Key), authentication(q)), 0, 0, 0, 0)
	if _, refused := s.request(m); refused == nil {
		t.Error("an unbound connection signs")
	}
	if refused := s.bind(bindMessage("host", "id", "proof", 0)); refused != nil {
		t.Errorf("%+v", refused)
	}
	got, refused := s.request(m)
	if refused != nil || got.User != "git" || string(got.HostKey) != "host" || string(got.Proof) != "proof" || got.Bound {
		t.Errorf("%+v, %+v", got, refused)
	}
	for n := range m {
		if _, refused := s.request(m[:n]); refused == nil {
			t.Errorf("%d bytes are taken", n)
		}
	}
}
