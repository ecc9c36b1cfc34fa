// Package names is the service of names: runs of one owner and namespace find each other by them.
//
// # Theory of operation
//
// A name is one row of an owner and a namespace. Runs hold it: an agent registers with a grant of kind
// name, and loses the name when it releases it or ends. Several runs may hold one name; the order of the
// holders is the order of their turns, and the one that had its turn goes to the end. A user reserves a
// name: that row stays without a holder.
//
// A topic is the name topic/T, and its subscribers are the holders: all of them are told, in place of one.
//
// A name of another owner or namespace is reported as one that does not exist.
//
// A reserved name may have a manifest, held by digest. Mail that is to wake it while no run holds it marks the
// row in its own transaction; Begin finds marked rows and starts one run each, in turns of namespaces, and that
// run gets the name at its start. A row that is marked survives a restart of cloved.
//
// It sends nothing: package kernel/mail asks it for receivers.
package names
