package runtime

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/pidfd"
)

// procRoot is the proc file system of the host's processes; tests read another one.
const procRoot = "/proc"

// Processes lists every process of the agent by pid, clove-init (1) first.
// One that ends meanwhile is left out.
func (l *Live) Processes() ([]agent.Process, error) {
	var pids []int
	var hostID uint32
	err := l.do(func() (err error) {
		hostID = l.s.run.Lease.HostID()
		pids, err = l.s.group.Pids()
		return err
	})
	if err != nil {
		return nil, agent.Failed("processes", err)
	}
	return processes(procRoot, pids, hostID)
}

// processes reads the host's pids from proc. hostID is the host id of
// id 0 inside.
func processes(proc string, pids []int, hostID uint32) ([]agent.Process, error) {
	var found []agent.Process
	inside := map[int]int{} // host pid to the sandbox's
	var parents []int       // host pids, beside found
	for _, pid := range pids {
		p, parent, err := readProcess(filepath.Join(proc, strconv.Itoa(pid)), hostID)
		if errors.Is(err, errNoProcess) {
			continue
		}
		if err != nil {
			return nil, agent.Failed("processes", err)
		}
		found, parents = append(found, p), append(parents, parent)
		inside[pid] = p.PID
	}
	// A second pass, because a parent may be listed after its child.
	for i, parent := range parents {
		found[i].ParentPID = inside[parent] // 0: it is not one of them
	}
	slices.SortFunc(found, func(a, b agent.Process) int { return a.PID - b.PID })
	return found, nil
}

// errNoProcess says that the process has ended.
var errNoProcess = errors.New("the process has ended")

// commandMax bounds what is shown of a command line: arguments may be
// megabytes, and the agent may have hundreds of processes with such.
const commandMax = 4096

// readProcess reads three files, between which the process may end or execute another
// program. Each failure counts as its end. parent is the host pid of its parent.
func readProcess(dir string, hostID uint32) (p agent.Process, parent int, err error) {
	stat, err := readSome(filepath.Join(dir, "stat"))
	if err != nil {
		return p, 0, err
	}
	status, err := readSome(filepath.Join(dir, "status"))
	if err != nil {
		return p, 0, err
	}
	name, columns, err := pidfd.ParseStat(string(stat))
	if err != nil {
		return p, 0, err
	}
	fields := statLine(columns)
	// By their numbers in proc_pid_stat(5): 20 threads, 24 resident pages, 14 and 15 CPU
	// time in user and kernel mode, 22 the start since boot; times are in clock ticks.
	p = agent.Process{State: fields[0], Threads: int(fields.number(20)), RSSBytes: fields.number(24) * int64(os.Getpagesize()),
		CPUMS:   (fields.number(14) + fields.number(15)) * 1000 / clockTicks,
		Started: time.Now().Add(time.Duration(fields.number(22)*int64(time.Second)/clockTicks - boottime.NowNS())).UTC().Truncate(time.Second / clockTicks)}
	if p.PID, p.UID = idsInside(status, hostID); p.PID == 0 {
		return p, 0, errNoProcess // libcontainer's, on its way in
	}
	command, err := readSome(filepath.Join(dir, "cmdline"))
	if err != nil {
		return p, 0, err
	}
	// As ps shows a process without arguments: a zombie, or one that erased them.
	p.Command = []string{"[" + strings.ToValidUTF8(name, "\uFFFD") + "]"}
	// clove-init was executed through a descriptor: its arguments name no program.
	if text := strings.TrimRight(string(command), "\x00"); text != "" && p.UID != agent.InitUID {
		p.Command = strings.Split(strings.ToValidUTF8(text, "\uFFFD"), "\x00")
	}
	return p, int(fields.number(4)), nil
}

// readSome reads the beginning of a file of proc.
func readSome(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, errNoProcess
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, commandMax))
	if err != nil {
		return nil, errNoProcess // ESRCH: it ended after the open
	}
	return text, nil
}

// clockTicks is USER_HZ, 100 on every architecture that clove knows, time(7).
const clockTicks = 100

// statLine holds the fields that pidfd.Stat returns, which begin with field 3 of
// proc_pid_stat(5).
type statLine []string

// number is 0 for what cannot be one.
func (f statLine) number(n int) int64 {
	value, _ := strconv.ParseInt(f[n-3], 10, 64)
	return value
}

// idsInside finds the innermost pid and the user of proc_pid_status(5); pid 0
// is a process that is in no other namespace than ours.
func idsInside(status []byte, hostID uint32) (pid int, uid uint32) {
	for line := range strings.Lines(string(status)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 2:
		case fields[0] == "NSpid:" && len(fields) > 2:
			pid, _ = strconv.Atoi(fields[len(fields)-1])
		case fields[0] == "Uid:":
			host, _ := strconv.ParseUint(fields[1], 10, 32)
			uid = uint32(host) - hostID
		}
	}
	return pid, uid
}
