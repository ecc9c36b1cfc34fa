// Package resolver asks the host's name servers, on behalf of agents.
//
//	Lookup ─▶ /etc/hosts ─▶ cache ─▶ one flight per question ─▶ server 1, 2, 3, and once more
//	                                                            UDP, and TCP if truncated
//
// It reads the same two files as the C library and follows them when they
// change, so that it works with whatever manages them (systemd-resolved on
// 127.0.0.53, NetworkManager, a VPN that comes up during a run); or it asks
// the servers that the user gave, and reads no file.
//
// Against forged answers each question has a random ID and a socket of its own,
// connected, on a port that the kernel picks; what does not match is not
// believed, and the wait goes on. When no server answers there is an error, and
// never another way to an answer.
//
// It knows no rules and filters nothing: the caller asks only for names that
// are allowed. The C library's other sources (mDNS, LDAP, nsswitch) are not
// asked, and search domains are only told, never tried.
package resolver
