package inner

import (
	"bytes"
	"context"
	"time"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
	"clove.run/clove/secrets/sshkey"
)

// signTime bounds the decision about one signature: ssh waits for it.
const signTime = 2 * time.Minute

// sshKey is a secret that signs.
type sshKey struct {
	link.Secret
	hosts []secrets.HostKey
	key   *sshkey.Key // nil: not known yet. The server's mu guards it
}

// learnKeys reads the private keys among the values, and returns the public ones. It is called with the lock.
func (s *Server) learnKeys(values link.Values) (map[string][]byte, error) {
	public := map[string][]byte{}
	for _, one := range s.keys {
		key, err := sshkey.Read([]byte(values[one.Name]))
		if err != nil {
			return nil, err
		}
		one.key, public[one.Name] = key, key.Public()
	}
	return public, nil
}

// sign signs an authentication, or reports why not. Every rule is checked here for each signature: the outer side is not believed.
func (s *Server) sign(q link.Sign) {
	signature, request, refused := s.signature(q)
	if refused != nil {
		s.report(request, *refused)
	}
	_ = s.outer.Send(link.ToOuter{Signed: &link.Signed{Number: q.Number, Signature: signature}}) // one that is gone needs none
}

func (s *Server) signature(q link.Sign) (signature []byte, request link.Request, refused *link.Denied) {
	request = link.Request{Method: secrets.MethodSSH, Host: sshkey.Fingerprint(q.HostKey), Path: q.User[:min(len(q.User), link.PathMost)]}
	one, _ := s.keyOf(q.Key)
	if one == nil {
		return nil, request, &link.Denied{Reason: link.ReasonForeign, Detail: "the key is none of the run's"}
	}
	refuse := func(reason link.Reason, detail string) ([]byte, link.Request, *link.Denied) {
		return nil, request, &link.Denied{Secret: one.Name, Reason: reason, Detail: detail}
	}
	host, known := one.host(q.HostKey)
	if !known {
		return refuse(link.ReasonName, "the session is with a host whose key is not one of the secret's")
	}
	request.Host = host
	if q.User != one.Terms.SSH.User {
		return refuse(link.ReasonName, "the secret is for the user "+one.Terms.SSH.User)
	}
	if err := sshkey.Verify(q.HostKey, q.Session, q.Proof); err != nil {
		return refuse(link.ReasonCert, "the host has not signed the session: "+err.Error())
	}
	ctx, cancel := context.WithTimeout(context.Background(), signTime)
	defer cancel()
	if v := s.decide(ctx, one.Name, request); v.Reason != "" {
		return refuse(link.ReasonUse, "the secret "+one.Name+" may not be used: "+v.Reason)
	}
	same, key := s.keyOf(q.Key)
	if same != one {
		return refuse(link.ReasonUse, "the secret "+one.Name+" has another value now: the next connection has it")
	}
	auth := sshkey.Auth{Session: q.Session, User: one.Terms.SSH.User, Algorithm: q.Algorithm}
	if q.Bound {
		auth.HostKey = q.HostKey
	}
	signature, err := key.Sign(auth)
	if err != nil {
		return refuse(link.ReasonForm, err.Error())
	}
	return signature, request, nil
}

// keyOf is the secret with a public key.
func (s *Server) keyOf(public []byte) (*sshKey, *sshkey.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.keys {
		if one.key != nil && bytes.Equal(one.key.Public(), public) {
			return one, one.key
		}
	}
	return nil, nil
}

// host is the host that has a key.
func (k *sshKey) host(key []byte) (string, bool) {
	for _, one := range k.hosts {
		if bytes.Equal(one.Key, key) {
			return one.Host, true
		}
	}
	return "", false
}
