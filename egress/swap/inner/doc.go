// Package inner is the side of egress/swap that has the values of secrets. It reads no byte as the agent wrote it: a
// request comes as typed values (link.Head), and its body is bytes.
//
//	outer ══ Head, body ══▶ place.go   which secrets the request carries, and where
//	                        use.go     clove is asked for each of them: grants, budget, expiry, people
//	                        serve.go   the request is written to the server, whose certificate was verified
//	outer ◀══ Answer, body ══ answer.go  the values are taken out of the answer
//
//	outer ══ Sign ══▶ sign.go  an ssh key signs: the host is pinned and has signed the session, the user is the secret's, and the text is
//	                           made here
//
// A connection leads to a socket that clove's broker has connected, under the network's rules. TLS has to prove the
// name of the rule; no setting turns that off. A placeholder is replaced in the header of its secret's terms, and in the
// query or the body where the terms say so. Elsewhere it leaves as it is, and is reported.
package inner
