package agent

import "time"

// Bounds of each limit, checked at every edge. Below a floor the sandbox does not start.
// Above a ceiling the value is a mistake, or overflows in the kernel's units.
const (
	// MemoryFloorBytes is 1.5 times the smallest limit with which /bin/true started every
	// time: 3.75 MiB on cgroup v1 with kernel 6.18 (20 starts for each size), 10 MiB on v2
	// with Debian's 6.1 (12 starts). That kernel always uses transparent huge pages, so a
	// Go heap starts with several pages of 2 MiB.
	MemoryFloorBytes = 16 << 20
	// UsualMemoryBytes and UsualDiskBytes are what a run has without asking, on any host.
	UsualMemoryBytes = 1 << 30
	UsualDiskBytes   = 1 << 30
	// PidsFloor was measured in the same way: 14 on v1 and 13 on v2. The threads of
	// clove-init count.
	PidsFloor = 16
	// PidsCeiling is PID_MAX_LIMIT of the kernel's linux/threads.h.
	PidsCeiling = 4 << 20
	// DiskFloorBytes has space for the layer's file system and little else (rootfs.MinDiskBytes).
	DiskFloorBytes = 8 << 20
	// CPUsFloor is docker's smallest share. It is also the kernel's: its smallest quota is
	// 1 ms, in a period of 100 ms.
	CPUsFloor = 0.01
	// CPUsCeiling is above every machine, and its quota is far below an overflow.
	CPUsCeiling = 65536
	// CPUCeiling is above CONFIG_NR_CPUS of every kernel, so no CPU has this number.
	CPUCeiling = 1 << 16
	// SizeCeiling, in bytes, is far above every machine and far below an overflow.
	SizeCeiling = 1 << 52
	// SizeFloor, in bytes, is one page: the least that a file system in memory can have.
	SizeFloor = 4096
	// ClockCeiling is far below the largest time.Duration (292 years).
	ClockCeiling = 100 * 365 * 24 * time.Hour
	// ClockStartFloor keeps a clock from the zero that programs take for unset. Beside
	// ClockStartCeiling there is room for any deadline in a time.Duration.
	ClockStartFloor   = time.Second
	ClockStartCeiling = 10 * 365 * 24 * time.Hour
	// A start that makes no progress keeps one of cloved's start slots for this long.
	// IdleFloor bounds Kernel.Idle: an agent that is ended sooner would be started more than it works.
	IdleFloor = time.Second

	StartTimeoutFloor   = time.Second
	StartTimeoutCeiling = time.Hour
	// PriorityCeiling bounds a priority in both directions.
	PriorityCeiling = 1000
	// ConnectionsCeiling and PerSecondCeiling bound the state of one gate.
	ConnectionsCeiling = 1 << 20
	PerSecondCeiling   = 1 << 20
)

// Bounds of the text in a Spec. The text is stored with the run, and one API answer lists
// many runs.
const (
	labelsMost    = 64
	labelKeyMost  = 128     // bytes
	labelMost     = 4 << 10 // bytes of a value
	labelsAllMost = 16 << 10
	pathMost      = 4096 // PATH_MAX
	hostnameMost  = 63
	scheduleMost  = 256
	rulesMost     = 1024
	targetMost    = 512
	entriesMost   = 256 // of any other list
	seccompMost   = 1 << 20
	// textMost, in bytes, keeps an answer with one run below the longest message between
	// clove and cloved (internal/rpc.MaxLine).
	textMost = 7 << 20
)
