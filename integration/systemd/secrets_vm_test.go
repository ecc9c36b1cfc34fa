//go:build vm

package systemd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// secretValue is the secret of these tests.
const secretValue = "ghp_Vm4tK2mW9sV4bN8cR1jL6hD3fG5pZ0aYuE"

// serviceHas restarts cloved with settings of its own beside the package's.
func serviceHas(t *testing.T, settings string) {
	t.Helper()
	sh(t, "mkdir -p /run/systemd/system/clove.service.d; printf '[Service]\n%s\n' '"+settings+"' >/run/systemd/system/clove.service.d/secrets.conf; systemctl daemon-reload; systemctl restart clove.service")
}

// secretsHere has a test begin without a key, and leaves none behind.
func secretsHere(t *testing.T) {
	t.Helper()
	installed(t)
	t.Cleanup(func() {
		removeAll(t)
		sh(t, "rm -rf /run/systemd/system/clove.service.d /root/clove.cred /root/clove.key; systemctl daemon-reload; systemctl restart clove.service")
		sh(t, "for s in $(clove secret list --json | grep -o '\"name\":\"[A-Z]*' | cut -d: -f2 | tr -d '\"'); do clove secret rm $s; done; rm -f /etc/clove/secret.key")
	})
}

// The key of secrets comes from systemd's credential, plain or encrypted, and then is in no file of clove's: a secret stays usable over restarts, also by
// a run. The controls: without the credential it is not, and with the wrong one neither.
func TestSystemdKeyOfSecrets(t *testing.T) {
	secretsHere(t)
	const key, file, sealed = "/root/clove.key", "/etc/clove/secret.key", "/root/clove.cred"
	sh(t, "printf %s "+secretValue+" | clove secret set --host api.example.com FIRST; mv "+file+" "+key)
	usable := func(when string, number int) {
		t.Helper()
		if said := do(t, "clove", "secret", "check"); !strings.Contains(said, fmt.Sprintf("%d secrets can be used", number)) {
			t.Errorf("%s: %s", when, said)
		}
		if said := do(t, "clove", "run", "--rm", "--allow", "api.example.com", "--secret", "FIRST:env=T", "--", "sh", "-c", "echo $T"); !strings.Contains(said, "cloveplaceholder") {
			t.Errorf("%s: %s", when, said)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: the key is in %s", when, file)
		}
	}
	refused := func(when string) {
		t.Helper()
		if o := try(t, "clove", "secret", "check"); !strings.Contains(o.text, "FIRST: ") || strings.Contains(o.text, secretValue) {
			t.Errorf("%s: %d, %s", when, o.code, o.text)
		}
		if o := try(t, "clove", "run", "--rm", "--allow", "api.example.com", "--secret", "FIRST:env=T", "--", "true"); o.code != 125 || !strings.Contains(o.text, "key of secrets") {
			t.Errorf("%s: %d, %s", when, o.code, o.text)
		}
	}
	serviceHas(t, "LoadCredential=clove-secret-key:"+key)
	usable("with the credential", 1)
	sh(t, "printf %s "+secretValue+" | clove secret set --host api.example.com SECOND")
	do(t, "systemctl", "restart", "clove.service")
	usable("after a restart", 2)
	if mine, its := do(t, "readlink", "/proc/1/ns/mnt"), do(t, "readlink", "/proc/"+itoa(mainPID(t))+"/ns/mnt"); mine != its {
		t.Errorf("cloved has a mount namespace of its own, in which the source of a -v may differ: %s, %s", mine, its)
	}
	do(t, "systemd-creds", "encrypt", "--with-key=host", "--name=clove-secret-key", key, sealed)
	serviceHas(t, "LoadCredentialEncrypted=clove-secret-key:"+sealed)
	usable("with the encrypted credential", 2)
	serviceHas(t, "")
	refused("control: without the credential")
	serviceHas(t, "SetCredential=clove-secret-key:AGE-SECRET-KEY-1")
	refused("control: with a damaged key")
	serviceHas(t, "LoadCredential=clove-secret-key:"+key)
	usable("with the credential again", 2)
}

// crash ends a process as a fault does whose handler cannot run: the kernel itself dumps its core, if it may.
func crash(t *testing.T, pid int) {
	t.Helper()
	// A process that was asked not to leave a core has a limit, too: it is not the limit that is tested.
	step(t, "prlimit", unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil))
	runtime.LockOSThread() // ptrace(2) is a thread's
	defer runtime.UnlockOSThread()
	step(t, "seize", unix.PtraceSeize(pid))
	step(t, "interrupt", unix.PtraceInterrupt(pid))
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, unix.WALL, nil)
	step(t, "wait", err)
	var regs unix.PtraceRegs
	step(t, "registers", unix.PtraceGetRegs(pid, &regs))
	regs.Rip, regs.Orig_rax = 0, ^uint64(0) // nothing is mapped there, and no system call is begun again
	step(t, "registers", unix.PtraceSetRegs(pid, &regs))
	all := ^uint64(0) // blocked: the kernel then takes the default action for a fault
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETSIGMASK, uintptr(pid), unsafe.Sizeof(all), uintptr(unsafe.Pointer(&all)), 0, 0)
	if errno != 0 {
		step(t, "mask", errno)
	}
	step(t, "detach", unix.PtraceDetach(pid))
	until(t, fmt.Sprintf("%d has crashed", pid), func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}

// hasSecret reports whether the secret is in what a process may write to.
func hasSecret(t *testing.T, pid string) bool {
	t.Helper()
	memory, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(sh(t, "cat /proc/"+pid+"/maps")) {
		var from, to int64
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err != nil || !strings.HasPrefix(mode, "rw") || to-from > 1<<28 {
			continue
		}
		text := make([]byte, to-from)
		if n, _ := memory.ReadAt(text, from); bytes.Contains(text[:n], []byte(secretValue)) { // the rest is not mapped
			return true
		}
	}
	return false
}

// step ends the test where a step of crash fails.
func step(t *testing.T, name string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Where the kernel writes every core, also that of a process which the limit would forbid one, cloved and the process that has the secrets of a run leave
// none. The controls: another process with the secret, and cloved before it has read a key.
func TestSystemdNoCoreHasASecret(t *testing.T) {
	secretsHere(t)
	before := sh(t, "cat /proc/sys/kernel/core_pattern")
	dir := t.TempDir()
	// To a program, which writes them as root: one to a file would be written with the rights and the root of the process.
	if err := os.WriteFile("/proc/sys/kernel/core_pattern", []byte("|/usr/bin/dd status=none of="+dir+"/%e.%p"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile("/proc/sys/kernel/core_pattern", []byte(before), 0o644) })
	cores := func(name string) (all []string) {
		all, err := filepath.Glob(filepath.Join(dir, name+".*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	pid := mainPID(t)
	crash(t, pid)
	until(t, "another cloved", func() bool { return mainPID(t) > 0 && mainPID(t) != pid && try(t, "clove", "ps").code == 0 })
	until(t, "control: a cloved without a key leaves a core", func() bool { return len(cores("cloved")) == 1 })
	sh(t, "printf %s "+secretValue+" | clove secret set --host api.example.com TOKEN")
	detach(t, "uses", "sleep 10000", "--allow", "api.example.com", "--secret", "TOKEN:env=T")
	swaps := strings.Fields(do(t, "pgrep", "-x", "clove-swap"))
	if len(swaps) != 2 {
		t.Fatalf("clove-swap: %v", swaps)
	}
	swaps = slices.DeleteFunc(swaps, func(text string) bool { return !hasSecret(t, text) })
	if len(swaps) != 1 {
		t.Fatalf("the secret is in the memory of %d processes of clove-swap", len(swaps))
	}
	inner, _ := strconv.Atoi(swaps[0])
	crash(t, inner)
	pid = mainPID(t)
	crash(t, pid)
	until(t, "another cloved", func() bool { return mainPID(t) > 0 && mainPID(t) != pid && try(t, "clove", "ps").code == 0 })
	holder := exec.Command("/usr/bin/python3", "-c", "import sys, time; s = sys.stdin.readline(); print('has it', flush=True); time.sleep(10000)")
	holder.Stdin = strings.NewReader(secretValue + "\n")
	said, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _ = said.Read(make([]byte, 6))
	crash(t, holder.Process.Pid)
	_ = holder.Wait()
	until(t, "control: the core of another process has the secret", func() bool {
		dumped := cores("python3*")
		if len(dumped) != 1 {
			return false
		}
		text, err := os.ReadFile(dumped[0])
		return err == nil && bytes.Contains(text, []byte(secretValue))
	})
	if all := cores("clove*"); len(all) != 1 {
		t.Errorf("there are cores: %v", all)
	}
}
