// Package rlimits has the one table of the resources of setrlimit(2). It sets
// none.
package rlimits

import (
	"slices"
	"strings"
)

// names are docker's words in the order of the kernel's numbers, which amd64 and
// arm64 share (asm-generic/resource.h).
var names = []string{"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks",
	"sigpending", "msgqueue", "nice", "rtprio", "rttime"}

// Names lists docker's words, sorted.
func Names() []string { return slices.Sorted(slices.Values(names)) }

// Resource is the number that setrlimit(2) wants for one of Names.
func Resource(name string) (number int, known bool) {
	number = slices.Index(names, name)
	return number, number >= 0
}

// OCIName is the OCI runtime specification's word for one of Names.
func OCIName(name string) string { return "RLIMIT_" + strings.ToUpper(name) }

// OCIResource is Resource for the specification's words.
func OCIResource(word string) (number int, known bool) {
	number = slices.IndexFunc(names, func(name string) bool { return OCIName(name) == word })
	return number, number >= 0
}
