package control

import (
	"context"
	"os"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/packet"
	"clove.run/clove/models/link"
)

// front is one clove-models.
type front struct {
	*keep.Process
	fronts *fronts
	uid    uint32 // of the owner whose runs it serves

	lists chan struct{} // places

	mu       sync.Mutex // guards the following
	calls    map[uint64]*call
	deciding int // calls whose answer is not sent
}

// maxLists bounds the lists of one clove-models that are made at once.
const maxLists = 16

// maxFlying bounds the calls of one clove-models that are decided, and those that are in
// flight: one that was taken over asks without end, and each takes memory of root's.
const maxFlying = 4096

// serve passes a run's listener.
func (f *front) serve(s *served) error {
	return f.Conn.Send(link.ToFront{Serve: &link.Serve{Run: s.run.Spec.ID}}, s.listener)
}

// leave has a run served no longer.
func (f *front) leave(s *served) {
	f.answer(link.ToFront{Leave: s.run.Spec.ID}) // a process that is gone serves none
}

// answer implements asker.
func (f *front) answer(m link.ToFront, files ...*os.File) { _ = f.Conn.Send(m, files...) }

// receive takes messages until the process ends. The calls of one that is left go on.
func (f *front) receive() {
	for {
		var m link.FromFront
		files, err := f.Conn.Receive(&m)
		packet.CloseAll(files) // an honest one sends none
		if err != nil {
			break
		}
		switch {
		case m.Begin != nil:
			f.begin(*m.Begin)
		case m.List != nil:
			f.list(*m.List)
		case m.Cancel != 0:
			f.cancel(m.Cancel)
		}
	}
	f.End()
	if f.Left() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.calls {
		k.gone()
	}
}

// servedBy returns a run that this clove-models serves; nil for any other that it names.
func (f *front) servedBy(run agent.ID) *served {
	if s := f.fronts.runs.get(run); s != nil && s.run.Owner.UID == f.uid {
		return s
	}
	return nil
}

// begin gives a call a place. What makes no sense gets none: what is held is short.
func (f *front) begin(b link.Begin) {
	if !sensible(b) { // no honest clove-models sends it
		f.answer(link.ToFront{Refuse: &link.Refuse{Number: b.Number, Reason: link.ReasonFailed, Message: senseless}})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{bill: bill{demand: demand{begin: b}, began: time.Now()}, desk: f.fronts.desk, asker: f, ctx: ctx, gone: cancel}
	switch free, full := f.take(c); {
	case !free: // the number is in use: no honest clove-models does that
		cancel()
	case full:
		cancel()
		f.answer(link.ToFront{Refuse: &link.Refuse{Number: b.Number, Reason: link.ReasonBusy, Message: "too many calls are in flight", After: 1}})
	default:
		go func() {
			if c.served = f.servedBy(b.Run); c.served != nil {
				c.learned = &c.served.learned
			}
			c.make()
		}()
	}
}

// take notes a call under its number. It reports whether the number was free; full, that
// there is no place.
func (f *front) take(k *call) (free, full bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[k.begin.Number] != nil {
		return false, false
	}
	if max(len(f.calls), f.deciding) >= f.fronts.places {
		return true, true
	}
	f.calls[k.begin.Number] = k
	f.deciding++
	return true, false
}

// decides implements asker.
func (f *front) decides() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deciding++
}

// decided implements asker.
func (f *front) decided() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deciding--
}

// release frees a call's number, once: another call may have it then. It implements asker.
func (f *front) release(k *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[k.begin.Number] == k {
		delete(f.calls, k.begin.Number)
	}
}

// cancel ends a call whose client has gone, whether it waits or runs.
func (f *front) cancel(number uint64) {
	f.mu.Lock()
	call := f.calls[number]
	f.mu.Unlock()
	if call != nil {
		call.gone()
	}
}

// list answers which models a run may call.
func (f *front) list(l link.List) {
	select {
	case f.lists <- struct{}{}:
		go func() {
			defer func() { <-f.lists }()
			f.answerList(l)
		}()
	default:
		f.answer(link.ToFront{Refuse: &link.Refuse{Number: l.Number, Reason: link.ReasonBusy, Message: "too many lists are asked for", After: 1}})
	}
}

func (f *front) answerList(l link.List) {
	names := &link.Names{Number: l.Number, Names: []string{}}
	if s, c := f.servedBy(l.Run), f.fronts.desk.Config(); s != nil {
		for _, name := range c.Names(s.run.Owner.UID, s.groups) {
			if ok, err := f.fronts.desk.Ledger.Allowed(s.run, "model:"+name); !ok || err != nil {
				continue
			}
			names.Names = append(names.Names, name)
			if targets, err := c.Resolve(name, s.run.Owner.UID, s.groups); name == l.Model && err == nil {
				names.Formats = formats(targets)
			}
		}
	}
	f.answer(link.ToFront{Names: names})
}

// fronts are the clove-models, one for each owner.
type fronts struct {
	keep.Pool
	launcher *keep.Launcher
	desk     *desk
	runs     *runs
	places   int               // maxFlying; tests have fewer
	pause    time.Duration     // the least from the start of one to that of the next
	all      map[uint32]*front // by owner; the pool guards it
}

// get returns that of an owner.
func (fs *fronts) get(uid uint32) (*front, error) {
	return keep.Obtain(&fs.Pool, func() *front {
		if f := fs.all[uid]; f != nil && !f.Ended() {
			return f
		}
		return nil
	}, func() (*front, error) {
		p, err := fs.launcher.Start(frontProgram)
		if err != nil {
			return nil, err
		}
		return &front{Process: p, fronts: fs, uid: uid, lists: make(chan struct{}, maxLists), calls: map[uint64]*call{}}, nil
	}, func(f *front) {
		fs.all[uid] = f
		go func() {
			f.receive()
			if !f.Left() {
				fs.replace(f)
			}
		}()
	})
}

// running returns that of an owner; nil: it was not started.
func (fs *fronts) running(uid uint32) *front {
	fs.Pool.Lock()
	defer fs.Pool.Unlock()
	return fs.all[uid]
}

// close refuses what comes, and returns the processes.
func (fs *fronts) close() (all []*keep.Process) {
	fs.Pool.Lock()
	defer fs.Pool.Unlock()
	fs.Close()
	for _, f := range fs.all {
		all = append(all, f.Process)
	}
	return all
}

// replace starts another clove-models for the runs that one served which has ended. One that
// ended soon is replaced later: an agent may know how to end it. Connections wait meanwhile.
func (fs *fronts) replace(old *front) {
	time.Sleep(fs.pause - time.Since(old.Started))
	if !fs.drop(old) {
		return
	}
	for _, s := range fs.runs.of(old.uid) {
		fs.desk.Log.Warn("clove-models has ended and is replaced", "owner", old.uid, "reason", old.Reason())
		f, err := fs.get(old.uid)
		if err == nil {
			err = f.serve(s)
		}
		switch {
		case fs.runs.get(s.run.Spec.ID) != s: // it has left
			if f != nil {
				f.leave(s)
			}
		case err != nil:
			fs.desk.Log.Error("a run has no models any more", "run", s.run.Spec.ID, "error", err)
		}
	}
}

// drop forgets a clove-models that has ended. It reports whether runs may need another.
func (fs *fronts) drop(old *front) bool {
	fs.Pool.Lock()
	defer fs.Pool.Unlock()
	if fs.Closed() || fs.all[old.uid] != old {
		return false
	}
	delete(fs.all, old.uid)
	return true
}
