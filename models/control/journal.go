package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/models/link"
)

// journal is one of a process that an earlier control has started.
type journal struct {
	file   *os.File
	whose  keep.Whose // zero: it is not known
	read   int64      // bytes of whole lines
	settle func(link.Done)
	log    *slog.Logger
}

func openJournal(path string, settle func(link.Done), log *slog.Logger) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	j := &journal{file: file, settle: settle, log: log}
	j.lines(func(line []byte) {
		if j.whose.PID == 0 {
			_ = json.Unmarshal(line, &j.whose) // the process cannot be killed then
		}
	})
	j.read = 0
	return j, nil
}

// lines calls f for each line that has come since the last time.
func (j *journal) lines(f func(line []byte)) {
	r := bufio.NewReader(io.NewSectionReader(j.file, j.read, link.JournalBytes-j.read))
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return // it is being written
		}
		j.read += int64(len(line))
		f(line)
	}
}

// ended settles what has ended since the last time. It reports whether the process has ended,
// and removes the file then.
func (j *journal) ended() bool {
	free := descriptor.Lock(j.file, unix.LOCK_EX|unix.LOCK_NB) == nil // before the last lines are read
	var settling sync.WaitGroup
	places := make(chan struct{}, settledAtOnce)
	j.lines(func(line []byte) {
		var d link.Done
		if json.Unmarshal(line, &d) == nil && len(d.Ticket) > 0 {
			places <- struct{}{}
			settling.Go(func() { j.settle(d); <-places })
		}
	})
	settling.Wait()
	if free {
		j.file.Close()
		os.Remove(j.file.Name())
	}
	return free
}

// settledAtOnce are calls that wait for the disk together.
const settledAtOnce = 64

// followTime is between two looks at a journal.
const followTime = 200 * time.Millisecond

// follow kills the process where it takes longer than longest.
func (j *journal) follow(ctx context.Context, longest time.Duration) {
	last := time.After(longest)
	for {
		select {
		case <-time.After(followTime):
		case <-last:
			j.kill()
		case <-ctx.Done():
			j.file.Close()
			return
		}
		if j.ended() {
			return
		}
	}
}

func (j *journal) kill() {
	err := errors.New("its journal does not name it")
	if j.whose.PID > 0 {
		var p *pidfd.Process
		if p, err = pidfd.OpenStarted(j.whose.PID, j.whose.Started); err == nil {
			err = p.Signal(unix.SIGKILL)
			p.Close()
		}
	}
	if err != nil && !pidfd.Gone(err) {
		j.log.Error("a process of models that is left cannot be ended", "journal", j.file.Name(), "error", err)
	}
}
