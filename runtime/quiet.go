package runtime

import (
	"path"

	"clove.run/clove/agent"
	"clove.run/clove/internal/gitdir"
)

// optional are refusals of what common programs only ask for and do without. They make no line on
// stderr, which a user would take for a fault; records, events and `clove why` have them.
var optional = []struct {
	kind, target string // pattern of the target, or of a name on the way to it
	call         string // the only call; empty: any
}{
	{agent.DenialCall, "io_uring_setup", ""},                 // Node's file operations go on with threads
	{agent.DenialCall, "get_mempolicy", ""},                  // libnuma, below ps and top, assumes one node
	{agent.DenialCapability, "CAP_CHOWN", "fchown"},          // cp -a and tar keep their own ids; chown(1) calls fchownat
	{agent.DenialFile, "__pycache__", ""},                    // Python compiles the module once more
	{agent.DenialFile, gitdir.SharedObjects, "utimensat"},    // git keeps objects that it meets from gc; it writes its own then
	{agent.DenialFile, "/etc/locale.alias", ""},              // setlocale(3) of glibc
	{agent.DenialFile, "/etc/ssl/openssl.cnf", ""},           // OpenSSL has defaults
	{agent.DenialFile, "/etc/python3*/sitecustomize.py", ""}, // there need not be one
}

// isOptional reports whether the user is not told of a denial.
func isOptional(d agent.Denial) bool {
	for _, o := range optional {
		if o.kind != d.Kind || o.call != "" && (d.Call == nil || d.Call.Name != o.call) {
			continue
		}
		for at := d.Target; ; at = path.Dir(at) {
			whole, _ := path.Match(o.target, at) // the patterns are sound
			if whole || o.target == path.Base(at) {
				return true
			}
			if at == path.Dir(at) {
				break
			}
		}
	}
	return false
}
