package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// A journal is the file of a process that goes on when this one is gone, so that its calls come
// to their end. The process holds the file's lock as long as it lives. The first line says who
// it is; the others, of a clove-upstream, how calls ended of which no control has heard.

// whose is the first line.
type whose struct {
	PID     int    `json:"pid"`
	Started uint64 `json:"started"` // see pidfd.StartTime
}

// newJournal makes the file for a process, which gets the returned descriptor, and with it the
// lock.
func (c *Control) newJournal(program string) (*os.File, error) {
	if err := os.MkdirAll(c.options.Journals, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(c.options.Journals, program+"-"+string(agent.NewID())), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
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

// sign writes the first line. One that is missing means that nobody can end the process, which
// then ends by itself.
func sign(journal *os.File, pid int) error {
	started, err := pidfd.StartTime(pid)
	if err != nil {
		return err
	}
	line, err := json.Marshal(whose{pid, started})
	if err == nil {
		_, err = journal.Write(append(line, '\n'))
	}
	return err
}

// ticket is what settles a call whose control is gone. clove-upstream has it and does not read
// it.
type ticket struct {
	Run         agent.ID       `json:"run"`
	Reservation string         `json:"reservation"`
	Reserved    budget.Amounts `json:"reserved"`
	Model       string         `json:"model"`
	Provider    string         `json:"provider"`
	Target      string         `json:"target"`
	Price       *config.Price  `json:"price,omitempty"`
	Begin       link.Begin     `json:"begin"`
	Began       time.Time      `json:"began"`
	Wait        time.Duration  `json:"wait"`
	// Of the tries before:
	Used  budget.Amounts `json:"used,omitempty"`
	Usage models.Usage   `json:"usage"`
	Cost  int64          `json:"cost,omitempty"`
	Over  bool           `json:"over,omitempty"`
}

// ticket is that of a call; nil: it ends with control.
func (k *call) ticket() json.RawMessage {
	if k.front.control.options.Journals == "" {
		return nil
	}
	begin := k.begin
	begin.Run, begin.Model, begin.Betas, begin.Tiers = "", "", nil, nil // clove-upstream gets no text of the agent's
	text, err := json.Marshal(ticket{Run: k.served.run.Spec.ID, Reservation: k.reservation, Reserved: k.reserved, Model: k.target.Name, Provider: k.target.Provider.Name,
		Target: k.target.Model, Price: k.target.Price, Begin: begin, Began: k.watched.began, Wait: k.watched.wait,
		Used: k.used, Usage: k.spent.usage, Cost: k.spent.cost, Over: k.spent.over})
	if err != nil { // there is no such value
		return nil
	}
	return text
}

// Find settles the calls that processes of a control before this one have ended, and will end,
// until ctx ends. Those that are still at it are followed, and killed where they take longer
// than any call may. gone is closed when none makes a call any more; nil: none does.
func (c *Control) Find(ctx context.Context) (gone <-chan struct{}, err error) {
	entries, err := os.ReadDir(c.options.Journals)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var failed error
	var calling sync.WaitGroup
	calls := false
	for _, entry := range entries {
		j, err := c.openJournal(filepath.Join(c.options.Journals, entry.Name()))
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		switch {
		case j.ended():
		case strings.HasPrefix(entry.Name(), upstreamProgram):
			calls = true
			calling.Go(func() { j.follow(ctx) })
		default:
			go j.follow(ctx)
		}
	}
	if calls {
		ended := make(chan struct{})
		gone = ended
		go func() { calling.Wait(); close(ended) }()
	}
	return gone, errors.Join(err, failed)
}

// journal is one of a process that an earlier control has started.
type journal struct {
	control *Control
	file    *os.File
	whose   whose // zero: it is not known
	read    int64 // bytes of whole lines
}

func (c *Control) openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	j := &journal{control: c, file: file}
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
			settling.Go(func() { j.control.found(d); <-places })
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

func (j *journal) follow(ctx context.Context) {
	last := time.After(j.control.longest())
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

// longest is how long a process may take for the calls that it has: as the slowest provider.
func (c *Control) longest() time.Duration {
	most := time.Minute
	for _, p := range c.options.Config().Providers {
		most = max(most, p.Timeouts.Total+time.Minute)
	}
	return most
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
		j.control.options.Log.Error("a process of models that is left cannot be ended", "journal", j.file.Name(), "error", err)
	}
}

// found settles a call of an earlier control.
func (c *Control) found(d link.Done) {
	var t ticket
	err := json.Unmarshal(d.Ticket, &t)
	if err == nil && c.options.Run == nil {
		err = fmt.Errorf("nobody knows runs")
	}
	var run agent.Run
	if err == nil {
		run, err = c.options.Run(t.Run)
	}
	if err != nil { // a run that was removed has no budget any more
		c.options.Log.Warn("a call of a model of an earlier cloved is not settled", "run", t.Run, "error", err)
		return
	}
	k := &call{begin: t.Begin, front: &front{control: c, uid: run.Owner.UID}, served: c.servedOr(run), found: true, reservation: t.Reservation,
		target:   config.Target{Name: t.Model, Model: t.Target, Provider: &config.Provider{Name: t.Provider}, Price: t.Price},
		reserved: t.Reserved, used: t.Used, spent: spent{t.Usage, t.Cost, t.Over}, watched: watched{began: t.Began, wait: t.Wait, sent: t.Began}}
	k.served.fly(1) // settle counts it down
	c.settle(k, d)
}

// servedOr is what serves a run. A supervisor that has not come yet finds the figures when it
// comes.
func (c *Control) servedOr(run agent.Run) *served {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.runs[run.Spec.ID]; s != nil {
		return s
	}
	s := c.early[run.Spec.ID]
	if s == nil {
		s = newServed(run, nil)
		if run.State != agent.StateEnded {
			c.early[run.Spec.ID] = s
		}
	}
	return s
}
