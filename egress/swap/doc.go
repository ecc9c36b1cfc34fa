// Package swap puts secrets into what an agent sends, outside of its sandbox: the agent has placeholders, and no
// process that reads its bytes has a secret.
//
//	agent ── TLS ─▶ clove-gate ── TLS ─▶ outer ══ typed request ══▶ inner ── TLS ─▶ server
//	                   ║                   ║                          ║
//	                 broker: rules,     this package: starts both, passes each connection to them,
//	                 address, socket ─▶ has each use decided, records what was refused
//
//	egress/swap/outer  ends TLS with the run's own authority, and parses HTTP
//	egress/swap/inner  has the values: puts them in, and takes them out of answers
//	egress/swap/link   the messages
//
// The broker decides and connects as for every connection. For a host of one of the run's secrets it passes the socket
// to the inner process, and the gate gets one end of a socket pair whose other end the outer process has. What
// the rules forbid later is cut as ever, because the broker keeps a duplicate of the socket.
//
// An ssh key is a secret that is in no request: ssh connects by itself, and asks the ssh agent of the outer process, at a socket in the
// sandbox, to sign. What is to be signed goes to the inner process as typed values.
//
// The values never pass through this process: they come in a pipe, from the process that keeps them, and the reading end
// goes to the inner process.
package swap
