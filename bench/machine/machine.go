package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/bench"
)

// Describe reads what this host is.
func Describe(cpus int) bench.Machine {
	m := bench.Machine{CPUs: cpus, Processor: processor(), Memory: memory("MemTotal"), Cgroup: hierarchy(), Findings: Findings("/")}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	return m
}

// Available is how much memory the host could give now without swapping, in bytes.
func Available() int64 { return memory("MemAvailable") }

func memory(key string) int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == key+":" {
			n, _ := strconv.ParseInt(words[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return goruntime.GOARCH
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return goruntime.GOARCH
}

// hierarchy says in a record's words which cgroups there are; each attempt's record has it
// from what was used.
func hierarchy() string {
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return "v2"
	}
	if unix.Statfs("/sys/fs/cgroup/unified", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return "hybrid"
	}
	return "v1"
}

// setting is one thing that makes figures vary.
type setting struct {
	name, path string
	quiet      func(value string) bool
	hint       string
}

// settings are read below /. One whose file is absent is not on this host, or hidden from it.
func settings() []setting {
	is := func(good ...string) func(string) bool {
		return func(value string) bool {
			for _, g := range good {
				if value == g {
					return true
				}
			}
			return false
		}
	}
	chosen := func(good string) func(string) bool {
		return func(value string) bool { return strings.Contains(value, "["+good+"]") }
	}
	return []setting{
		{"SMT", "sys/devices/system/cpu/smt/active", is("0"), "echo off > /sys/devices/system/cpu/smt/control"},
		{"frequency scaling", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", is("performance"), "cpupower frequency-set -g performance"},
		{"turbo (intel)", "sys/devices/system/cpu/intel_pstate/no_turbo", is("1"), "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"},
		{"turbo", "sys/devices/system/cpu/cpufreq/boost", is("0"), "echo 0 > /sys/devices/system/cpu/cpufreq/boost"},
		{"transparent huge pages", "sys/kernel/mm/transparent_hugepage/enabled", chosen("never"), "echo never > /sys/kernel/mm/transparent_hugepage/enabled"},
		{"address space layout", "proc/sys/kernel/randomize_va_space", is("0"), "sysctl kernel.randomize_va_space=0; for machines that only measure"},
		{"clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource", is("tsc", "kvm-clock", "arch_sys_counter"), "boot with clocksource=tsc if the machine has a stable one"},
	}
}

// Findings reads all settings below root, and swap.
func Findings(root string) []bench.Finding {
	var all []bench.Finding
	for _, s := range settings() {
		text, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			all = append(all, bench.Finding{Name: s.name, Value: "not known here", Quiet: true})
			continue
		}
		value := string(bytes.TrimSpace(text))
		all = append(all, finding(s.name, value, s.quiet(value), s.hint))
	}
	return append(all, swap(root), load(root))
}

func finding(name, value string, quiet bool, hint string) bench.Finding {
	f := bench.Finding{Name: name, Value: value, Quiet: quiet}
	if !quiet {
		f.Hint = hint
	}
	return f
}

func swap(root string) bench.Finding {
	text, _ := os.ReadFile(filepath.Join(root, "proc/swaps"))
	areas := max(0, strings.Count(strings.TrimSpace(string(text)), "\n"))
	return finding("swap", fmt.Sprintf("%d areas", areas), areas == 0, "swapoff -a; attempts have no swap, but what else runs here has")
}

// load is quiet if less than a tenth of a processor was busy in the last minute.
func load(root string) bench.Finding {
	text, _ := os.ReadFile(filepath.Join(root, "proc/loadavg"))
	value, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseFloat(value, 64)
	return finding("load of the last minute", value, err == nil && n < 0.1, "wait, or end what else runs here")
}
