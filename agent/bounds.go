package agent

import "time"

// What a limit may be, at every edge. Less than a floor and the sandbox cannot come up;
// more than a ceiling is a mistake, or would overflow in the kernel's own units.
const (
	// MemoryFloorBytes is half as much again as the least with which /bin/true started
	// every time: 3.75 MiB on cgroup v1 and kernel 6.18 (20 starts at each size), but
	// 10 MiB on v2 and Debian's 6.1 (12 starts), where transparent huge pages are
	// always on and a Go program's heap begins with several of 2 MiB.
	MemoryFloorBytes = 16 << 20
	// PidsFloor was measured likewise, 14 and 13; clove-init's threads count.
	PidsFloor = 16
	// PidsCeiling is PID_MAX_LIMIT of the kernel's linux/threads.h.
	PidsCeiling = 4 << 20
	// DiskFloorBytes holds the layer's own file system and little more (rootfs.MinDiskBytes).
	DiskFloorBytes = 8 << 20
	// CPUsFloor is the smallest share that docker accepts, and that the kernel's quota
	// of 1 ms in each 100 ms can express.
	CPUsFloor = 0.01
	// CPUsCeiling is above every machine, and its quota far below what overflows.
	CPUsCeiling = 65536
	// CPUCeiling is above CONFIG_NR_CPUS of every kernel: no CPU has that number.
	CPUCeiling = 1 << 16
	// SizeCeiling, in bytes, is far above every machine and far below an overflow.
	SizeCeiling = 1 << 52
	// SizeFloor, in bytes, is one page: the least that a file system in memory can have.
	SizeFloor = 4096
	// ClockCeiling keeps a deadline far from the end of a Duration.
	ClockCeiling = 100 * 365 * 24 * time.Hour
	// A start holds one of the places for starts until it is given up.
	StartTimeoutFloor   = time.Second
	StartTimeoutCeiling = time.Hour
	// PriorityCeiling bounds a priority in both directions.
	PriorityCeiling = 1000
	// ConnectionsCeiling and PerSecondCeiling bound what one gate is asked to hold.
	ConnectionsCeiling = 1 << 20
	PerSecondCeiling   = 1 << 20
)

// How much text a spec may hold. It is stored with the run, and answers list many runs.
const (
	labelsMost    = 64
	labelKeyMost  = 128     // bytes
	labelMost     = 4 << 10 // bytes of a value
	labelsAllMost = 16 << 10
	wordMost      = 128 << 10 // bytes of one argument or variable: MAX_ARG_STRLEN of execve(2)
	wordsAllMost  = 6 << 20   // bytes of all: what execve(2) takes at most, whatever the stack limit
	pathMost      = 4096      // PATH_MAX
	hostnameMost  = 63
	scheduleMost  = 256
	rulesMost     = 1024
	targetMost    = 512
	entriesMost   = 256 // of any other list
	seccompMost   = 1 << 20
	// textMost, in bytes, is what leaves an answer with one run below the longest message
	// between clove and cloved (internal/rpc.MaxLine).
	textMost = 7 << 20
)
