// Package grant decides what a grant allows, and what may be derived from it.
//
// A grant is a row: a holder may do what its scope covers, until it expires or its uses
// are spent. A Scope is KIND:PATTERN[:RIGHTS]:
//
//	kind               pattern                                covers
//	tool spawn send    a name; * is any run of characters     names that match, case counts
//	  secret                                                  (exec, fetch and git: only as they are)
//	model              the same, then :provider-tools or      calls of models that match; with
//	                   :provider-state, or neither            rights, also what they name
//	net                a target of --allow (egress)           what an allow rule for it allows
//	file state         an absolute path, then :ro or :rw      the path and everything below it
//	audit              a namespace; / is the owner's own      the namespace and those below it
//	taint              a taint's name                         this name
//
// A path without rights is read-only. Text is never decoded or folded: %2e is three
// characters, and a letter that only looks like another is refused or is another. A name of
// net is the exception, because resolvers fold case and Unicode: egress makes it canonical.
//
// Covers compares what two scopes mean, not their text: /notes does not cover /notes2,
// 10.0.0.0/8 covers 10.1.0.0/16, *.example.com does not cover example.com. Where it cannot
// decide, the answer is no. A name never covers an address, nor an address a name; the
// word public of --allow covers both.
//
// # Derived grants
//
// A grant that is passed on has a parent, and is never wider: same kind, covered scope, no
// later expiry, no more uses. A use counts on the grant and on each of its ancestors, so
// several children may be promised the same uses, and together cannot spend more than the
// parent has. The uses that are left of a derived grant depend on its ancestors (Effective).
//
// A giver that derives is an agent, and an agent is never root: a derived grant opens
// neither metadata services nor this host's own addresses, which only root's grant opens.
//
// # The wall
//
// The gate enforces net grants: Rules makes of them the rules that --allow makes. The gate
// counts no uses, so a net grant has none to count. Check knows the row only: the gate
// decides on each connection, and more strictly, because it also knows the address of a
// name and those of the host.
//
// # What it does not do
//
// It has no clock, no files and no store. It trusts the rows that it is given: the store
// keeps them, and the kernel writes the changed ones. A Statement proves offline that a
// grant was given; nothing turns one into a grant.
package grant
