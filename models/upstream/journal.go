package upstream

import (
	"encoding/json"
	"os"
	"sync"

	"clove.run/clove/models/link"
)

// journal has how calls ended of which control does not hear any more. The next control reads
// it.
type journal struct {
	mu   sync.Mutex // guards the following
	file *os.File   // nil: there is none
	room int        // bytes that may still be written
}

func newJournal(file *os.File) *journal {
	return &journal{file: file, room: link.JournalBytes - headBytes}
}

// headBytes is room for what control has written into the file.
const headBytes = 1 << 10

// add writes how a call ended. A call that is not in the journal counts as used in full.
func (j *journal) add(d link.Done) {
	line, err := json.Marshal(d)
	if err != nil {
		return
	}
	line = append(line, '\n')
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil || len(line) > j.room { // beyond its limit the kernel ends the process
		return
	}
	j.room -= len(line)
	_, _ = j.file.Write(line) // no room in memory: the call counts in full
}
