// Package resolver queries the host's name servers on behalf of agents.
//
//	Lookup ─▶ /etc/hosts ─▶ cache ─▶ one flight per question ─▶ server 1, 2, 3, and once more
//	                                                            UDP, and TCP if truncated
//
// It reads the same two files as the C library, and again when they change, so it
// works with whatever manages them (systemd-resolved on 127.0.0.53,
// NetworkManager, a VPN that comes up during a run). If the user gave servers, it
// queries those and reads no file.
//
// Against forged answers each query has a random ID and a connected socket of its
// own, on a port that the kernel picks. An answer that does not match is ignored,
// and the wait goes on. If no server answers, Lookup returns an error; there is no
// fallback.
//
// It refuses to filter: the caller asks only for names that are allowed. It does
// not use the C library's other sources (mDNS, LDAP, nsswitch), and reports search
// domains without applying them.
package resolver
