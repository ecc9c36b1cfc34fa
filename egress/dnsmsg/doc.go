// Package dnsmsg knows the DNS message format, for both sides of the gate's
// channel, and is the only importer of the DNS library.
//
//	agent ── packet ──▶ ParseQuery ─▶ Query ─(gate asks broker)─▶ name, type
//	                                    │                            │
//	      ◀─ packet ── Finish ◀─────────┴── Reply.Pack ◀── Filter ◀─ Reply ◀─ resolver
//
// A Query is all that is left of what an agent sent: the rest of the packet goes
// no further. A Reply is all that is left of what a name server sent: the
// records that answer the question, in the order of its CNAME chain, and the SOA
// that times a negative answer. Glue, name servers, foreign records and the AD
// bit are gone: an agent's C library might use an address whose owner it does
// not compare, and only what Addresses tells is pinned.
//
// The package refuses what no stub resolver sends: several questions, classes
// but IN, opcodes but QUERY, meta types, records in the query's other sections.
// It refuses a name server's whole message if a record of it that would go on
// cannot be read once packed: it is malformed, and another server may do better.
// It opens no sockets and decides nothing; the caller says which addresses stay.
package dnsmsg
