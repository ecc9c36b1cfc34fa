// Package state is the service of keys that agents keep: small values of JSON at paths.
//
// # Theory of operation
//
// A scope has keys. That of a run is its own, and goes with it; those of a name and that of a namespace are
// shared by the owner's runs of the namespace that have a grant: state:/name/NAME/PATH and
// state:/namespace/PATH, which cover the path and what is below it. The name is any; a grant says which, so
// that one which changes hands means the same keys.
//
// Each scope has one row, which counts its keys and their bytes and gives each change its version, also
// after the last key is gone: a version never comes twice. A key's row is small and apart from its value, so
// that lists and expiry read no values. A key that has expired is absent; writes remove such keys, some at
// a time.
//
// A change may name the version that must be there. All of it is one transaction, with the audit entry:
// of callers that name the same version one wins.
//
// state.watch answers when a key has changed since a version. That a key expires is no change that wakes it.
package state
