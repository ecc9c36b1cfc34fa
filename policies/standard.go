package policies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// StandardName is the level that runs have when nothing else is asked.
const StandardName = "standard"

const mebibyte = 1 << 20

// Standard returns the defaults of the standard level, for everything that the user did not
// say. The zero value of a field denies: no network, no environment, no host files.
func Standard() agent.Spec {
	spec := agent.Spec{
		User:    AgentUser,
		Dir:     agent.WorkspaceDir,
		Network: agent.NetworkNone,
		Seccomp: agent.Seccomp{Profile: "standard"},
		// A browser with many tabs has some hundred connections; a flood has more.
		Egress: agent.Egress{Limits: agent.EgressLimits{Connections: 1024, PerSecond: 200}},
		Limits: agent.Limits{
			// Limits that every agent has. Those that are zero here (CPUs, time, output)
			// have no limit by default.
			MemoryBytes:     agent.UsualMemoryBytes,
			MemorySwapBytes: agent.UsualMemoryBytes, // no swap: a slow agent is worse than a dead one
			Pids:            512,
			Rlimits: []agent.Rlimit{
				{Name: "core", Soft: 0, Hard: 0},
				// The agent does not inherit the limits of clove: a shell of root's may be
				// allowed priorities that starve the host.
				{Name: "nice", Soft: 0, Hard: 0},
				{Name: "nofile", Soft: 4096, Hard: 4096},
				{Name: "rtprio", Soft: 0, Hard: 0},
			},
			StopGrace: 2 * time.Second,
			DiskBytes: agent.UsualDiskBytes,
			ShmBytes:  64 * mebibyte, // docker's default for /dev/shm
		},
	}
	spec.Policy = agent.Policy{Name: StandardName, SHA256: fingerprint(spec)}
	return spec
}

// The two users that have names.
var AgentUser, RootUser = settings.AgentUser, settings.RootUser

// fingerprint is the hash of the level's canonical form, so that a record shows whether two
// runs had the same defaults.
func fingerprint(spec agent.Spec) string {
	text, err := json.Marshal(spec)
	if err != nil {
		panic(err) // a value of this package's own making always encodes
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
