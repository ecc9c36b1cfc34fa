package main

import (
	"debug/elf"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// host is what building a spec needs to know of this machine and of the
// caller. Files are looked at through the os package: tests make real ones.
type host struct {
	Environ    []string // the caller's
	Dir        string   // the caller's working directory
	UID        int
	CPUs       []int  // online, ascending
	StackBytes uint64 // soft limit of the stack; half of what execve allows hangs on it
	Machine    elf.Machine
	Base       []string // directories that appear inside at the same path
}

// baseDirs are the parts of the host's base system that hold programs.
var baseDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/etc/alternatives"}

// machines are the ELF machines of the platforms that clove is built for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64, "riscv64": elf.EM_RISCV}

// currentHost reads a few small files; it is paid at each run.
func currentHost() (host, error) {
	dir, err := os.Getwd()
	if err != nil {
		return host{}, &agent.Error{Kind: agent.KindInvalid, Message: "the working directory is gone", Hint: "cd to one that exists", Err: err}
	}
	h := host{Environ: os.Environ(), Dir: dir, UID: os.Geteuid(), Machine: machines[goruntime.GOARCH], Base: baseDirs}
	online, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err == nil {
		h.CPUs, err = parseCPUs(strings.TrimSpace(string(online)))
	}
	if err != nil {
		// Without /sys: the CPUs that this process may use.
		for cpu := range goruntime.NumCPU() {
			h.CPUs = append(h.CPUs, cpu)
		}
	}
	var stack unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &stack); err != nil {
		return host{}, agent.Failed("getrlimit", err)
	}
	h.StackBytes = stack.Cur
	return h, nil
}

// lookup returns a variable of the caller's environment.
func (h host) lookup(key string) (value string, set bool) {
	for _, entry := range h.Environ {
		if k, v, _ := strings.Cut(entry, "="); k == key {
			return v, true
		}
	}
	return "", false
}

// absolute is filepath.Abs from the caller's directory.
func (h host) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(h.Dir, path)
}

// inBase tells whether a clean path appears inside without being asked for.
func (h host) inBase(path string) bool {
	return slices.ContainsFunc(h.Base, func(dir string) bool { return within(path, dir) })
}

// within tells whether path is dir or lies below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// exists does not follow a last link: one that dangles is something, too.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// isProgram tells whether path is, through links, a file that some user may
// execute.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
