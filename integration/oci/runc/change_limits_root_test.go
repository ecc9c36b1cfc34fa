//go:build root

package runc

import (
	"math/rand/v2"

	"github.com/opencontainers/runtime-spec/specs-go"
)

var resourceChanges = []change{
	{"memory", func(b *bundle, d *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer(pick[int64](d, 64<<20, 256<<20)), Reservation: pointer[int64](32 << 20)}
	}},
	{"memory and swap", func(b *bundle, d *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer[int64](64 << 20), Swap: pointer(pick[int64](d, 64<<20, 128<<20, -1))}
	}},
	{"memory unlimited", func(b *bundle, d *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer(pick[int64](d, 0, -1))}
	}},
	{"memory too little", func(b *bundle, d *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer(pick[int64](d, 1, 4096))}
	}},
	{"swap below memory", func(b *bundle, _ *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer[int64](64 << 20), Swap: pointer[int64](32 << 20)}
	}},
	{"swap alone", func(b *bundle, _ *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Swap: pointer[int64](64 << 20)}
	}},
	{"swappiness", func(b *bundle, d *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Swappiness: pointer(pick[uint64](d, 0, 60, 101))}
	}},
	{"no kill for memory", func(b *bundle, _ *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer[int64](64 << 20), DisableOOMKiller: pointer(true)}
	}},
	{"memory checked before", func(b *bundle, _ *rand.Rand) {
		b.resources().Memory = &specs.LinuxMemory{Limit: pointer[int64](64 << 20), CheckBeforeUpdate: pointer(true)}
	}},
	{"pids", func(b *bundle, d *rand.Rand) {
		b.resources().Pids = &specs.LinuxPids{Limit: pointer(pick[int64](d, 8, 64, -1))}
	}},
	{"no pids", func(b *bundle, _ *rand.Rand) { b.resources().Pids = &specs.LinuxPids{Limit: pointer[int64](0)} }},
	{"shares", func(b *bundle, d *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{Shares: pointer(pick[uint64](d, 2, 512, 262144, 1))}
	}},
	{"quota", func(b *bundle, d *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{Quota: pointer(pick[int64](d, 50000, 200000, -1)), Period: pointer(pick[uint64](d, 100000, 50000))}
	}},
	{"quota wrong", func(b *bundle, d *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{Quota: pointer(pick[int64](d, 1, 50000)), Period: pointer(pick[uint64](d, 10, 2_000_000))}
	}},
	{"burst", func(b *bundle, _ *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{Quota: pointer[int64](50000), Period: pointer[uint64](100000), Burst: pointer[uint64](10000)}
	}},
	{"idle", func(b *bundle, d *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{Idle: pointer(pick[int64](d, 0, 1))}
	}},
	{"cpus", func(b *bundle, d *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{Cpus: pick(d, "0", "0-1"), Mems: "0"}
	}},
	{"cpus wrong", func(b *bundle, d *rand.Rand) { b.resources().CPU = &specs.LinuxCPU{Cpus: pick(d, "900", "x", "1-0")} }},
	{"real time", func(b *bundle, _ *rand.Rand) {
		b.resources().CPU = &specs.LinuxCPU{RealtimeRuntime: pointer[int64](1000), RealtimePeriod: pointer[uint64](100000)}
	}},
	{"blocks' weight", func(b *bundle, d *rand.Rand) {
		b.resources().BlockIO = &specs.LinuxBlockIO{Weight: pointer(pick[uint16](d, 10, 500, 1000, 5))}
	}},
	{"blocks' rate", func(b *bundle, _ *rand.Rand) {
		device := specs.LinuxThrottleDevice{Rate: 1 << 20}
		device.Major, device.Minor = 7, 0
		b.resources().BlockIO = &specs.LinuxBlockIO{ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{device}}
	}},
	{"huge pages", func(b *bundle, d *rand.Rand) {
		b.resources().HugepageLimits = []specs.LinuxHugepageLimit{{Pagesize: pick(d, "2MB", "3MB", "big"), Limit: 2 << 20}}
	}},
	{"network class", func(b *bundle, _ *rand.Rand) {
		b.resources().Network = &specs.LinuxNetwork{ClassID: pointer[uint32](7)}
	}},
	{"by file", func(b *bundle, d *rand.Rand) {
		b.resources().Unified = map[string]string{pick(d, "pids.max", "memory.high", "none.such", "../pids.max", "a/b"): pick(d, "20", "max", "x")}
	}},
	{"devices allowed", func(b *bundle, d *rand.Rand) {
		b.resources().Devices = append(b.resources().Devices,
			specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: pointer(pick[int64](d, 1, 10)), Minor: pointer[int64](229), Access: pick(d, "r", "rw", "rwm")})
	}},
	{"all devices allowed", func(b *bundle, _ *rand.Rand) {
		b.resources().Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
	}},
	{"devices taken away again", func(b *bundle, _ *rand.Rand) {
		b.resources().Devices = append(b.resources().Devices, specs.LinuxDeviceCgroup{Allow: true, Type: "b", Access: "rwm"},
			specs.LinuxDeviceCgroup{Allow: false, Type: "b", Major: pointer[int64](8), Access: "w"})
	}},
	{"device rule wrong", func(b *bundle, d *rand.Rand) {
		b.resources().Devices = append(b.resources().Devices, pick(d, specs.LinuxDeviceCgroup{Allow: true, Type: "z", Access: "r"},
			specs.LinuxDeviceCgroup{Allow: true, Type: "c", Access: "xyz"}, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: pointer[int64](-5), Access: "r"}))
	}},
	{"no device rules", func(b *bundle, _ *rand.Rand) { b.resources().Devices = nil }},
	{"no resources", func(b *bundle, _ *rand.Rand) { b.linux().Resources = nil }},
	{"cgroup by path", func(b *bundle, d *rand.Rand) {
		b.linux().CgroupsPath = pick(d, "/", "/"+cgroupParent+"/deep/", "", cgroupParent+"/") + b.site.id
	}},
	{"cgroup with dots", func(b *bundle, d *rand.Rand) {
		b.linux().CgroupsPath = pick(d, "/../../", "../", "/"+cgroupParent+"/../") + b.site.id
	}},
	{"cgroup for systemd without it", func(b *bundle, _ *rand.Rand) { b.linux().CgroupsPath = "system.slice:test:" + b.site.id }},
	{"memory policy", func(b *bundle, d *rand.Rand) {
		b.linux().MemoryPolicy = &specs.LinuxMemoryPolicy{Mode: pick[specs.MemoryPolicyModeType](d, "MPOL_BIND", "MPOL_DEFAULT", "MPOL_NONE"), Nodes: pick(d, "0", "")}
	}},
	{"cache", func(b *bundle, _ *rand.Rand) {
		b.linux().IntelRdt = &specs.LinuxIntelRdt{ClosID: "none", L3CacheSchema: "L3:0=f"}
	}},
}
