package keep

import (
	"encoding/json"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/pidfd"
)

// A journal is the file of a process that goes on when this one is gone, so that its calls come
// to their end. The process holds the file's lock as long as it lives. The first line says who
// it is; the others, of a clove-upstream, how calls ended of which no control has heard.

// Whose is the first line.
type Whose struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // see pidfd.StartTime
}

// NewJournal makes the file for a process, which gets the returned descriptor, and with it the
// lock.
func NewJournal(dir, program string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, program+"-"+string(agent.NewID())), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := descriptor.Lock(file, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		os.Remove(file.Name())
		return nil, err
	}
	return file, nil
}

// Sign writes the first line. One that is missing means that nobody can end the process, which
// then ends by itself.
func Sign(journal *os.File, pid int) error {
	started, err := pidfd.StartTime(pid)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Whose{pid, started})
	if err == nil {
		_, err = journal.Write(append(line, '\n'))
	}
	return err
}
