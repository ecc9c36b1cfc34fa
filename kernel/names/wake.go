package names

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/starts"
	"clove.run/clove/store"
)

// Starter starts runs for names that mail is to wake.
type Starter interface {
	// Digest is that of the newest manifest of an owner with a name, and its namespace, which the one that is named
	// must be; empty: it may be any.
	Digest(tx *store.KernelTx, owner uint32, manifest, namespace string) (digest, of string, err error)
	// Start keeps a run that is started when the call is durable, for the name with a key. Names.Ended is called when
	// it has ended.
	Start(c *service.Call, r *Row, key string) (service.Outcome, error)
	// Starting reports whether a run for the name with a key is there, or is to come.
	Starting(tx *store.KernelTx, key string) (bool, error)
	// Pending are those that pay for the runs which were started for names and do not execute yet.
	Pending(tx *store.KernelTx) ([]starts.Pays, error)
}

// triesMost bounds the starts in a row that leave the mail for which they were.
const triesMost = 3

// withManifest is the index of the names for which runs are started.
const withManifest = "names_started"

func startedTerms(r *Row) []string {
	if r.Manifest == "" {
		return nil
	}
	return []string{"yes"}
}

// take gives a row the manifest of a reservation; without one nothing wakes the name.
func (n Names) take(c *service.Call, r *Row, manifest string) (err error) {
	r.Manifest, r.Digest, r.Why, r.Tries = manifest, "", "", 0
	r.Waking = r.Waking && manifest != ""
	if manifest == "" {
		return nil
	}
	if n.Starter == nil {
		return api.Failure(api.CodeUnenforceable, agent.StartCloved(), "cloved starts the run of a name, and does not run")
	}
	var of string
	if r.Digest, of, err = n.Starter.Digest(c.Tx, r.Owner, manifest, r.Namespace); err == nil && of != r.Namespace {
		err = api.Failure(api.CodeConflict, "reserve it with --namespace "+of, "the manifest %s is of the namespace %q", manifest, of)
	}
	return err
}

// Wakes refuses mail that is to wake a name which has no manifest.
func (n Names) Wakes(c *service.Call, owner uint32, namespace, name string) error {
	r, err := get(c.Tx, owner, namespace, name)
	if err == nil && r.Manifest == "" {
		err = api.Failure(api.CodeConflict, "send without wake, or have its owner give it one: clove name reserve --manifest MANIFEST NAME", "%.64q has no manifest of which a run could be started", name)
	}
	return err
}

// Wake has a run started for a name that no live run holds, when the call is durable. While one is to come, it
// changes nothing.
func (n Names) Wake(c *service.Call, owner uint32, namespace, name string, out *service.Outcome) error {
	r, err := get(c.Tx, owner, namespace, name)
	if err != nil {
		return err
	}
	comes, err := n.Starter.Starting(c.Tx, Rows.Key(r))
	if err != nil || comes || r.Waking && r.Tries == 0 {
		return err
	}
	r.Waking, r.Tries = true, 0
	n.later(out, c.Now)
	return Rows.Put(c.Tx, r)
}

// later has Begin called when a call is durable, not before a time.
func (n Names) later(out *service.Outcome, at time.Time) {
	if n.Due != nil {
		out.Durable = append(out.Durable, func() { n.Due(at) })
	}
}

// Again has a run started for a reserved name that no run holds any more, if mail is left that is to wake it: that
// which has come too late for the last one. Where several in a row have left it, it waits for a new message.
func (n Names) Again(tx *store.KernelTx, owner uint32, namespace, name string, now time.Time, out *service.Outcome) error {
	r, err := get(tx, owner, namespace, name)
	if err != nil || r.Manifest == "" || len(r.Holders) > 0 {
		return err
	}
	left, err := n.Waits(tx, owner, namespace, name)
	switch {
	case err != nil:
		return err
	case !left && r.Tries == 0:
		return nil
	case !left:
		r.Tries, r.Why = 0, ""
	case r.Tries >= triesMost:
		r.Why = cmp.Or(r.Why, fmt.Sprintf("%d runs have ended and left mail that was to wake it", r.Tries))
	default:
		r.Waking = true
		if r.Tries > 0 {
			r.NotBefore = now.Add(time.Second << r.Tries).UTC()
		}
		n.later(out, cmp.Or(r.NotBefore, now))
	}
	return Rows.Put(tx, r)
}

// Ended does what follows for a name from the end of the run that was started for it. why says why it failed;
// again: it was not started, and may be later.
func (n Names) Ended(c *service.Call, key, why string, again bool) (out service.Outcome, err error) {
	n.later(&out, c.Now) // there is a place for another start
	r, err := Rows.Get(c.Tx, key)
	if err != nil || r == nil || why == "" {
		return out, err
	}
	if r.Why = why; again {
		r.Tries, r.NotBefore = max(0, r.Tries-1), c.Now.Add(starts.TryAgain).UTC()
	}
	return out, cmp.Or(Rows.Put(c.Tx, r), n.Again(c.Tx, r.Owner, r.Namespace, r.Name, c.Now, &out))
}

// Take gives the run of a call the name for which it was started, and returns that; empty: the name is gone.
func (n Names) Take(c *service.Call, key string) (name string, err error) {
	r, err := Rows.Get(c.Tx, key)
	if err != nil || r == nil || !r.Reserved || len(r.Holders) == holdersMost {
		return "", err
	}
	r.Waking, r.NotBefore = false, time.Time{}
	r.Holders = append(r.Holders, Holder{Run: c.Run.Spec.ID, Since: c.Now.UTC()})
	return r.Name, Rows.Put(c.Tx, r)
}

// Begin starts runs for the names that mail is to wake. again is when there is more to do; zero: a change will bring it.
func (n Names) Begin(e *service.Engine) (again time.Time, err error) {
	return starts.Each(e, "wake", n.able, n.begin)
}

// able are the names for which a run can be started now, the one whose turn it is first, and when the next can be.
func (n Names) able(tx *store.KernelTx, now time.Time) (able []*Row, again time.Time, err error) {
	all, err := Rows.Indexed(tx, withManifest, "yes")
	if err != nil || !slices.ContainsFunc(all, func(r *Row) bool { return r.Waking }) {
		return nil, again, err
	}
	pending, err := n.Starter.Pending(tx)
	if err != nil {
		return nil, again, err
	}
	able, err = starts.Able(all, pending, func(r *Row) (bool, error) {
		if !r.Waking {
			return false, nil
		}
		comes, err := n.Starter.Starting(tx, Rows.Key(r))
		if err != nil || comes {
			return false, err
		}
		early := now.Before(r.NotBefore)
		if early && (again.IsZero() || r.NotBefore.Before(again)) {
			again = r.NotBefore
		}
		return !early, nil
	})
	return able, again, err
}

// Pays is for starts.For.
func (r *Row) Pays() starts.Pays { return starts.Pays{Owner: r.Owner, Namespace: r.Namespace} }

// LastTurn is for starts.For.
func (r *Row) LastTurn() uint64 { return r.Turn }

// begin starts a run for a name, unless nothing is left to be woken for, or notes why not.
func (n Names) begin(c *service.Call, r *Row, out *service.Outcome) (begun bool, err error) {
	left, err := n.Waits(c.Tx, r.Owner, r.Namespace, r.Name)
	if err != nil {
		return false, err
	}
	held := slices.ContainsFunc(r.Holders, func(h Holder) bool { _, lives := n.live(c, h.Run); return lives })
	if r.Waking = left && !held; !r.Waking {
		return true, Rows.Put(c.Tx, r)
	}
	started, err := n.Starter.Start(c, r, Rows.Key(r))
	if err != nil {
		if api.ErrorOf(err).Code == api.CodeInternal {
			return false, err
		}
		r.Why, r.NotBefore = api.ErrorOf(err).Message, c.Now.Add(starts.TryAgain).UTC()
		return true, Rows.Put(c.Tx, r)
	}
	all, err := Rows.Indexed(c.Tx, withManifest, "yes")
	out.Add(started)
	r.Turn, r.Waking, r.Tries, r.Why, r.NotBefore = starts.Turn(all), false, r.Tries+1, "", time.Time{}
	entry := c.Entry("mail.wake", r.Name, "allow")
	entry.Owner, entry.Namespace = r.Owner, r.Namespace
	return true, cmp.Or(err, Rows.Put(c.Tx, r), service.Record(c.Tx, entry))
}

// Idle notes that a run which ends has left no mail by its names: what comes from now on starts the next run at once.
func Idle(tx *store.KernelTx, run agent.ID) error {
	held, err := Rows.Indexed(tx, byRun, string(run))
	for _, r := range held {
		if r.Tries > 0 {
			r.Tries, r.Why = 0, ""
			err = cmp.Or(err, Rows.Put(tx, r))
		}
	}
	return err
}
