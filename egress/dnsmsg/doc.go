// Package dnsmsg implements the DNS message format for both sides of the gate's
// channel. It is the only importer of the DNS library.
//
//	agent ── packet ──▶ ParseQuery ─▶ Query ─(gate asks broker)─▶ name, type
//	                                    │                            │
//	      ◀─ packet ── Finish ◀─────────┴── Reply.Pack ◀── Filter ◀─ Reply ◀─ resolver
//
// A Query has only name, type and flags of what an agent sent; nothing else of the
// packet is forwarded. A Reply has only a part of what a name server sent: the
// records that answer the question, in the order of its CNAME chain, and the SOA
// with the TTL of a negative answer. Glue, NS records, unrelated records and the AD
// bit are removed: an agent's C library might use an address without comparing its
// owner name, but only the addresses of Addresses are pinned.
//
// The package refuses what no stub resolver sends: several questions, classes other
// than IN, opcodes other than QUERY, meta types, records in the query's other
// sections. It refuses a name server's whole message if a record to be forwarded
// cannot be parsed again after packing: the message is malformed, and another server
// may answer correctly. It opens no sockets and makes no decisions; the caller says
// which addresses stay.
package dnsmsg
