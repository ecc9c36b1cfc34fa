package doctest

import (
	"strings"
	"testing"
)

// numbers are statements of a document about a number in the code, so that a change of one
// leads to the other. Blanks are compared as one.
var numbers = []struct{ document, says, source, declares string }{
	{"README.md", "1 GiB of memory without swap, 512 processes, 1 GiB of disk", "policies/standard.go", "MemoryBytes: agent.UsualMemoryBytes,"},
	{"README.md", "1 GiB of memory without swap, 512 processes, 1 GiB of disk", "policies/standard.go", "MemorySwapBytes: agent.UsualMemoryBytes,"},
	{"README.md", "1 GiB of memory without swap, 512 processes, 1 GiB of disk", "policies/standard.go", "Pids: 512,"},
	{"README.md", "1 GiB of memory without swap, 512 processes, 1 GiB of disk", "agent/bounds.go", "UsualMemoryBytes = 1 << 30"},
	{"README.md", "1 GiB of memory without swap, 512 processes, 1 GiB of disk", "agent/bounds.go", "UsualDiskBytes = 1 << 30"},
	{"README.md", "1 GiB of memory without swap, 512 processes, 1 GiB of disk", "policies/standard.go", "DiskBytes: agent.UsualDiskBytes,"},
	{"README.md", "id 1000 in a range of 65536 host ids", "agent/spec.go", "IDsPerAgent = 65536"},
	{"README.md", "id 1000 in a range of 65536 host ids", "policies/settings/parse.go", `AgentUser = agent.User{Name: "agent", UID: 1000,`},
	{"README.md", "1.8 times `runc run`", "docs/benchmarks.md", "1.8 times the wall clock time of `runc run`"},
	{"README.md", "283.4 ms, where `runc run` takes 25.5 ms", "docs/benchmarks.md", "runc 1.1.5) | 283.4 ms |"},
	{"README.md", "283.4 ms, where `runc run` takes 25.5 ms", "docs/benchmarks.md", "`run`, whole command | 25.5 ms |"},
	{"ARCHITECTURE.md", "PID 1, id 65533", "agent/spec.go", "InitUID = 65533"},
	{"ARCHITECTURE.md", "Two seconds later it kills", "runtime/supervise_end.go", "const lastResort = 2 * time.Second"},
	{"docs/decisions/01-oci-config.md", "runc 1.5.2", "go.mod", "github.com/opencontainers/runc v1.5.2"},
	{"docs/decisions/01-oci-config.md", "opencontainers/cgroups 0.1.0", "go.mod", "github.com/opencontainers/cgroups v0.1.0"},
	{"docs/decisions/05-host-ids.md", "65536 host ids, from 0x70000000 on", "agent/run.go", "FirstHostID = 0x70000000"},
	{"docs/api.md", "a line of 64 KiB", "daemon/conversation.go", "maxSmall = 64 << 10"},
	{"docs/api.md", "alone 7.5 MiB", "daemon/conversation.go", "maxMessage = 7<<20 + 512<<10"},
	{"docs/api.md", "64 levels of nesting", "internal/rpc/document.go", "maxDepth = 64"},
	{"docs/api.md", "256 requests in a batch", "daemon/conversation.go", "maxBatch = 256"},
	{"docs/api.md", "64 lines being answered", "daemon/conversation.go", "maxPending = 64"},
	{"docs/api.md", "takes 1024 connections", "daemon/server.go", "maxConnections = 1024"},
	{"docs/api.md", "128 of each user", "daemon/server.go", "maxConnectionsEach = 128"},
	{"docs/api.md", "at most 64 MiB for the calls", "daemon/ledger.go", "maxOwed = 64 << 20"},
	{"docs/api.md", "256 MiB for those of all users together", "daemon/ledger.go", "maxOwedRest = 256 << 20"},
	{"docs/api.md", "128 MiB for root's", "daemon/ledger.go", "maxOwedRoot = 128 << 20"},
	{"docs/api.md", "32 MiB for those on one connection", "daemon/ledger.go", "maxOwedOne = 32 << 20"},
	{"docs/api.md", "16 KiB and their text", "daemon/ledger.go", "requestCost = 16 << 10"},
	{"docs/api.md", "at most 1 MiB together", "daemon/ledger.go", "maxBatched = 1 << 20"},
	{"docs/api.md", "root's up to 1 MiB", "daemon/list.go", "rootPageBytes = 1 << 20"},
	{"docs/limits.md", "Beyond a quarter of `--memory`", "agent/spec.go", "return l.MemoryBytes / 4"},
	{"docs/network.md", "200 DNS queries a second", "egress/gate/dns.go", "queriesPerSecond = 200"},
	{"docs/network.md", "after a burst of 400", "egress/gate/dns.go", "queriesBurst = 400"},
	{"docs/oci.md", "4096 connections and UDP flows", "egress/host/guard.go", "Connections: 4096,"},
	{"docs/oci.md", "1000 new ones in a second", "egress/host/guard.go", "PerSecond: 1000}"},
	{"docs/sdk-python.md", "256 notifications wait", "kernel/socket/queue.go", "maxQueued = 256"},
	{"docs/sdk-python.md", "for up to 15 seconds", "sdk/python/clove/agent.py", "patience: float = 15.0"},
	{"sdk/python/clove/agent.py", "an agent have 32 in all", "kernel/socket/socket.go", "MaxConnections = 32"},
	{"docs/sdk-typescript.md", "256 notifications wait", "kernel/socket/queue.go", "maxQueued = 256"},
	{"docs/sdk-typescript.md", "for up to 15 seconds", "sdk/typescript/agent.js", "patience = 15_000"},
	{"docs/sdk-typescript.md", "at most 8 connections", "sdk/typescript/agent.js", "connections = 8"},
	{"sdk/typescript/agent.d.ts", "an agent have 32 in all", "kernel/socket/socket.go", "MaxConnections = 32"},
	{"docs/supervision.md", "up to 5 minutes", "scheduler/restart.go", "MaxBackoff = 5 * time.Minute"},
	{"docs/supervision.md", "ran for 2 minutes", "scheduler/restart.go", "steady = 2 * time.Minute"},
	{"docs/supervision.md", "Each minute of waiting", "scheduler/queue.go", "const risesEach = time.Minute"},
	{"SECURITY.md", "at most 1 MiB each and 64 MiB together", "rootfs/executed_place.go", "maxManifestBytes = 1 << 20 maxParsedBytes = 64 << 20"},
	{"docs/apply.md", "at most 1 MiB, and 64 MiB of all files together", "rootfs/executed_place.go", "maxManifestBytes = 1 << 20 maxParsedBytes = 64 << 20"},
	{"docs/network.md", "100 a second after a burst of 1000, and in each hour 500 different names of 16384 bytes", "egress/broker/names.go", "wideQuestionsPerSecond = 100 wideQuestionsBurst = 1000 // Of different names, at first and again in each hour. wideNames = 500 wideNameBytes = 16 << 10"},
	{"SECURITY.md", "500 different names of 16384 bytes together in each hour", "egress/broker/names.go", "wideNames = 500 wideNameBytes = 16 << 10"},
	{"SECURITY.md", "two minutes at the latest", "runtime/live.go", "const maxHold = 2 * time.Minute"},
}

func TestNumbersAreTheCodes(t *testing.T) {
	t.Parallel()
	for _, n := range numbers {
		if !contains(readTree(t, n.document), n.says) {
			t.Errorf("%s does not say %q of %s (%s): keep both and this table together", n.document, n.says, n.declares, n.source)
		}
		if !contains(readTree(t, n.source), n.declares) {
			t.Errorf("%s does not declare %q, of which %s says %q", n.source, n.declares, n.document, n.says)
		}
	}
}

func contains(text, part string) bool {
	return strings.Contains(strings.Join(strings.Fields(text), " "), part)
}
