// Package outer is the side of egress/swap that reads what an agent sends: it ends TLS with the run's own authority,
// and parses HTTP, and it serves the run's ssh agent. It holds no secret; the inner side gets typed requests from it.
//
//	agent ── TLS ──▶ outer ══ Head, and a body in frames ══▶ inner ── TLS ──▶ server
//	agent ── ssh agent's messages ──▶ outer ══ Sign ══▶ inner
//
// The key of the authority is made here, and is nowhere else. It certifies the hosts of the run's secrets and nothing
// else, and its certificate says so (RFC 5280, section 4.2.1.10): a client that honours name constraints believes it for no
// other name.
//
// A connection is for one host, which clove names. Its TLS handshake waits until the inner side has met the server, with the
// versions of HTTP that the client offers, so that both sides speak the same. One that shows another name in TLS, in Host or in :authority is
// refused here, and again inside. A client that ends TLS at the certificate does not trust the authority, and is reported (trust.go).
//
// A connection of ssh is bound to one session with session-bind@openssh.com. What it has signed must be the authentication of a user in
// that session; all else that a user could ask of an ssh agent is refused here. The inner side verifies the session.
package outer
