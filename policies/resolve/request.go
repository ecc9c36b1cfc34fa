package resolve

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// Request is what one run was asked to be. A setting that is absent has its default, which is
// the standard level's (policies.Standard) unless its row says otherwise.
//
// A size is a number of bytes with an optional unit, powers of 1024: "512K", "1.5G". A
// duration is Go's or a number of seconds: "90", "1.5s", "2h30m". Relative paths of the
// host begin at Host.Dir.
type Request struct {
	Script string   // host path of a script or program, which runs inside with its interpreter; empty: Args is the whole command
	Args   []string // the script's or program's arguments, or the command and its arguments
	// Program is the name of a program of the caller's, in place of a script: it is shown read-only
	// with what it needs. Installed is the folder of a package to look in last.
	Program   string
	Installed string
	Policy    string // level, name or file of the policy that the defaults come from, see LoadPolicy; default: standard

	PolicyShadow string // the same, of a policy that is decided beside and refuses nothing; default: none

	settings.Values // by the names of package settings

	// Manifest is the agent's file that the request was laid over, see LoadManifest.
	Manifest agent.Manifest

	// ClockStart is as agent.Spec has it. No flag sets it; bench does.
	ClockStart time.Duration
}
