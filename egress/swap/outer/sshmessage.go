package outer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
)

// Messages of the protocol of ssh agents (draft-ietf-sshm-ssh-agent).
const (
	sshFailure   = 5
	sshSuccess   = 6
	sshList      = 11
	sshKeys      = 12
	sshSign      = 13
	sshSignature = 14
	sshExtension = 27
)

// sshOperations are messages that are refused, by what they ask for.
var sshOperations = map[byte]string{9: "remove", 17: "add", 18: "remove", 19: "remove", 20: "add", 21: "remove", 22: "lock", 23: "unlock", 25: "add", 26: "add"}

func sshOperation(kind byte) string {
	if name := sshOperations[kind]; name != "" {
		return name
	}
	return fmt.Sprint("message ", kind)
}

var errMessage = errors.New("a message is malformed")

// refuseSSH is the report of an operation that is refused.
func refuseSSH(operation, detail string) *link.Denied {
	return &link.Denied{Request: link.Request{Method: secrets.MethodSSH, Path: operation}, Reason: link.ReasonForm, Detail: detail}
}

// session is what a connection was bound to by session-bind@openssh.com: the host with which ssh speaks over it. The inner side verifies it
// with each signature.
type session struct {
	hostKey, id, proof []byte
	refused            bool // another bind was refused: nothing is signed any more
}

// bind takes an extension of the protocol. A connection is bound once.
func (s *session) bind(m []byte) *link.Denied {
	r := reader{rest: m}
	name := string(r.text())
	if name != "session-bind@openssh.com" {
		return refuseSSH("extension", fmt.Sprintf("the extension %.64q is not there", name))
	}
	bound := session{hostKey: r.text(), id: r.text(), proof: r.text()}
	forwarded := r.byte()
	switch {
	case !r.ended() || forwarded > 1:
		s.refused = true
		return refuseSSH("bind", errMessage.Error())
	case forwarded == 1:
		s.refused = true
		return refuseSSH("bind", "the agent may not be forwarded to another host")
	case s.id != nil:
		s.refused = true
		return refuseSSH("bind", "the connection is bound to a session already")
	}
	s.hostKey, s.id, s.proof = bound.hostKey, bound.id, bound.proof
	return nil
}

// request takes what is to be signed, which has to be the authentication of a user in the session: RFC 4252, section 7.
func (s *session) request(m []byte) (q link.Sign, refused *link.Denied) {
	r := reader{rest: m}
	key, text := r.text(), r.text()
	r.number() // flags choose the hash of an RSA key, which the text names, too
	if !r.ended() {
		return q, refuseSSH("sign", errMessage.Error())
	}
	const userauthRequest = 50
	t := reader{rest: text}
	id, kind := t.text(), t.byte()
	user, service, method := string(t.text()), string(t.text()), string(t.text())
	signed, algorithm, same := t.byte(), string(t.text()), t.text()
	q = link.Sign{Key: key, Session: id, HostKey: s.hostKey, Proof: s.proof, User: user, Algorithm: algorithm, Bound: method == "publickey-hostbound-v00@openssh.com"}
	var host []byte
	if q.Bound {
		host = t.text()
	}
	switch {
	case !t.ended() || kind != userauthRequest || service != "ssh-connection" || method != "publickey" && !q.Bound || signed != 1 || !bytes.Equal(same, key):
		return q, refuseSSH("sign", "the text is no authentication of a user, for which alone the key is")
	case s.refused:
		return q, refuseSSH("sign", "another session of the connection was refused")
	case s.id == nil:
		return q, refuseSSH("sign", "the connection is not bound to a session: it takes ssh of OpenSSH 8.9 or later")
	case !bytes.Equal(id, s.id):
		return q, refuseSSH("sign", "the authentication is for another session than the connection is bound to")
	case q.Bound && !bytes.Equal(host, s.hostKey):
		return q, refuseSSH("sign", "the authentication is for another host than the connection is bound to")
	}
	return q, nil
}

// reader reads the values of a message (RFC 4251, section 5). Behind the first mistake all are empty.
type reader struct {
	rest  []byte
	wrong bool
}

// ended reports whether all was read, and nothing beyond.
func (r *reader) ended() bool { return !r.wrong && len(r.rest) == 0 }

// take is the next n bytes; nil: there are not as many.
func (r *reader) take(n uint32) []byte {
	if r.wrong || uint64(n) > uint64(len(r.rest)) {
		r.wrong = true
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() (b byte) {
	if taken := r.take(1); taken != nil {
		b = taken[0]
	}
	return b
}

func (r *reader) number() (n uint32) {
	if taken := r.take(4); taken != nil {
		n = binary.BigEndian.Uint32(taken)
	}
	return n
}

func (r *reader) text() []byte { return r.take(r.number()) }

func appendString(to, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}
