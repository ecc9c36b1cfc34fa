package host

import (
	"debug/elf"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// Host is what building a spec needs to know of this machine and of the caller.
type Host struct {
	Environ  []string    // the caller's environment, KEY=VALUE
	Dir      string      // the caller's working directory, absolute
	UID      int         // the caller's effective user ID; only root may show directories beside the workspace
	CPUs     []int       // numbers of the online CPUs, ascending
	Machine  elf.Machine // of the programs that run here
	Base     []string    // directories that appear inside at the same path
	Policies []string    // directories of policies that have a name; the first counts
	Agents   []string    // directories of manifests that have a name; the first counts
	Ceiling  string      // directory with the policy that bounds every run; empty: none does
}

// policiesDir is where root keeps the policies of a host, and its ceiling.
const policiesDir = "/etc/clove/policies"

// PoliciesDir is the directory of the host's policies. CLOVE_POLICIES in the environment of
// clove and cloved names another one, for a second installation: a user who can set it for root
// can change the directory itself.
func PoliciesDir() string {
	if dir := os.Getenv("CLOVE_POLICIES"); filepath.IsAbs(dir) {
		return dir
	}
	return policiesDir
}

// agentsDirs are those of the host's agents, and of those that packages bring.
var agentsDirs = []string{"/etc/clove/agents", "/usr/share/clove/agents"}

// own puts the caller's own directory of that name before the host's.
func (h Host) own(name string, dirs ...string) []string {
	config, _ := h.Lookup("XDG_CONFIG_HOME") // empty means the same as none
	if home, has := h.Lookup("HOME"); config == "" && has {
		config = filepath.Join(home, ".config")
	}
	if filepath.IsAbs(config) {
		dirs = append([]string{filepath.Join(config, "clove", name)}, dirs...)
	}
	return dirs
}

// BaseDirs are the parts of a host's base system that hold programs. Every agent sees them
// at the same paths, so their programs need no mount of their own.
var BaseDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc/alternatives"}

// machines are the ELF machines of the platforms that clove is built for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV}

// Current describes this machine and this process. It reads few and small files, because
// every clove run pays for it.
func Current() (Host, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Host{}, &agent.Error{Kind: agent.KindInvalid, Message: "the working directory is gone", Hint: "cd to one that exists", Err: err}
	}
	h := Host{Environ: os.Environ(), Dir: dir, UID: os.Geteuid(), Machine: machines[goruntime.GOARCH], Base: BaseDirs}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err == nil {
		h.CPUs, err = ParseCPUs(strings.TrimSpace(string(online)))
	}
	if err != nil {
		// Without /sys: the CPUs that this process may use.
		for cpu := range goruntime.NumCPU() {
			h.CPUs = append(h.CPUs, cpu)
		}
	}
	h.Policies, h.Agents, h.Ceiling = h.own("policies", PoliciesDir()), h.own("agents", agentsDirs...), PoliciesDir()
	return h, nil
}

// Lookup returns a variable of the caller's environment.
func (h Host) Lookup(key string) (value string, set bool) {
	// The first of several entries counts, as with getenv(3).
	for _, entry := range h.Environ {
		if k, v, _ := strings.Cut(entry, "="); k == key {
			return v, true
		}
	}
	return "", false
}

// Absolute is filepath.Abs relative to the caller's directory, not to this process's: a
// spec can be built for another caller.
func (h Host) Absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(h.Dir, path)
}

// InBase reports whether a clean path is part of the base system, which every agent sees.
func (h Host) InBase(path string) bool {
	return slices.ContainsFunc(h.Base, func(dir string) bool { return Within(path, dir) })
}
