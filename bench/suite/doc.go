// Package suite reads the suite of a bench: one YAML file that names environments, tasks,
// agents and seeds, and folders beside it.
//
// The reader is internal/document: an unknown key is refused with its line. Load then checks
// what no schema can say, such as names that lead nowhere, and computes the suite's hash over
// the document and every file that it names. Limits and networks are texts in the notation of
// clove run, which policies/resolve reads when an attempt is made.
//
// A suite never leads outside of its folder: a path that is absolute or climbs is refused,
// but for rootfs, which is a directory of the host.
package suite
