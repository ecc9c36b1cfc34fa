package daemon

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/daemon/supervisor"
)

// threads returns the number of threads of this process.
func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	must(t, err)
	return len(tasks)
}

// A supervisor costs cloved a descriptor and a goroutine, but no thread: with a thread each,
// five hundred agents took 50 MiB.
func TestSupervisorsTakeNoThreads(t *testing.T) {
	t.Parallel()
	const many = 64
	dir := t.TempDir()
	// The program answers that it has started, and stays until the pipe has no writer.
	program := filepath.Join(dir, "clove")
	script := "#!/bin/sh\ncat <&3 >/dev/null\nexec 5<" + filepath.Join(dir, "hold") + "\necho '{\"started\":true}' >&4\nexec 4>&-\nread line <&5\n"
	must(t, os.WriteFile(program, []byte(script), 0o700))
	must(t, unix.Mkfifo(filepath.Join(dir, "hold"), 0o600))
	hold, err := os.OpenFile(filepath.Join(dir, "hold"), os.O_RDWR, 0) // its readers wait while it is open
	must(t, err)
	here := processes{program: program, cgroup: func() (*os.File, error) { return nil, nil }}
	before := threads(t)
	var all []<-chan struct{}
	for range many {
		answer, gone, err := here.start(supervisor.Order{Spec: spec("one"), LogDir: dir})
		must(t, err)
		if !answer.Started {
			t.Errorf("%+v", answer)
		}
		all = append(all, gone)
	}
	if after := threads(t); after > before+many/2 {
		t.Errorf("%d supervisors took %d threads", many, after-before)
	}
	hold.Close()
	var waited sync.WaitGroup
	for _, gone := range all {
		waited.Go(func() { <-gone })
	}
	waited.Wait()
}
