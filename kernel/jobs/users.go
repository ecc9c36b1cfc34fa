package jobs

import (
	"cmp"
	"slices"
	"strings"

	"clove.run/clove/api"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// post adds a job of a user's.
func (j *Jobs) post(c *service.Call, p api.JobsAddParams) (result api.JobResult, out service.Outcome, err error) {
	out.About = scopePrefix + p.Queue
	owner, err := ownerOf(c, p.Owner)
	if err != nil {
		return result, out, err
	}
	q, err := find(c.Tx, owner, p.Namespace, p.Queue)
	if err != nil {
		return result, out, err
	}
	return j.put(c, q, p.NewJob)
}

// jobsInPart bounds a part of a list; with the longest bodies it fits into a line of a user's.
const jobsInPart = 16

// lists are the tables of jobs in the order of lists, and what cursors in them begin with.
var lists = []struct {
	cursor string
	table  store.Table[lease.Message]
}{{"a/", lease.Messages}, {"b/", lease.Letters}, {"c/", lease.Finished}}

func list(c *service.Call, p api.JobsListParams) (result api.JobsListResult, out service.Outcome, err error) {
	boxes, err := chosen(c, p)
	result.Jobs = []api.Job{}
	for _, l := range lists {
		for _, b := range boxes {
			if err != nil || result.Next != "" || l.cursor+b.ID()+"/~" < p.After {
				continue
			}
			err = part(c, &result, p, l.cursor, l.table, b)
		}
	}
	return result, out, err
}

// part adds the jobs of one box in one table, behind p.After.
func part(c *service.Call, result *api.JobsListResult, p api.JobsListParams, cursor string, table store.Table[lease.Message], b *lease.Box) error {
	after, _ := strings.CutPrefix(p.After, cursor)
	if after == p.After {
		after = ""
	}
	for {
		if len(result.Jobs) == jobsInPart {
			result.Next = cursor + cmp.Or(after, b.ID()+"/")
			return nil
		}
		page, next, err := table.Page(c.Tx, b.ID()+"/", after, jobsInPart-len(result.Jobs))
		for _, m := range page {
			if a := shown(m, b.Of); p.State == "" || a.State == p.State {
				result.Jobs = append(result.Jobs, a)
			}
		}
		if err != nil || next == "" {
			return err
		}
		after = next
	}
}

// chosen are the boxes of the queues that a list is about, in the order of their ids.
func chosen(c *service.Call, p api.JobsListParams) (boxes []*lease.Box, err error) {
	if _, err := ownerOf(c, p.Owner); err != nil {
		return nil, err
	}
	all, err := Queues.Below(c.Tx, "")
	for _, q := range all {
		if !mine(c, q.Owner) || p.Owner != nil && q.Owner != *p.Owner || p.Namespace != nil && q.Namespace != *p.Namespace || p.Queue != "" && q.Name != p.Queue {
			continue
		}
		b, berr := lease.Boxes.Get(c.Tx, q.box().ID())
		if err = cmp.Or(err, berr); b != nil {
			boxes = append(boxes, b)
		}
	}
	slices.SortFunc(boxes, func(a, b *lease.Box) int { return strings.Compare(a.ID(), b.ID()) })
	return boxes, err
}

// owned is a job of the calling user's.
func owned(c *service.Call, id string) (m *lease.Message, b *lease.Box, err error) {
	m, b, err = lease.Job(c.Tx, id, func(b *lease.Box) bool { return mine(c, b.Owner) })
	if err == nil && m == nil {
		err = noJob(id)
	}
	return m, b, err
}

func show(c *service.Call, p api.JobGetParams) (result api.JobResult, out service.Outcome, err error) {
	m, b, err := owned(c, p.ID)
	if err == nil {
		result.Job = shown(m, b.Of)
	}
	return result, out, err
}

func (j *Jobs) retry(c *service.Call, p api.JobParams) (result api.JobResult, out service.Outcome, err error) {
	out.About = short(p.ID)
	m, b, err := owned(c, p.ID)
	if err != nil {
		return result, out, err
	}
	switch state := shown(m, b.Of).State; state {
	case api.JobDead:
		err = lease.Again(c.Tx, b, m)
	case api.JobDelayed:
		err = lease.Soon(c.Tx, m)
	default:
		err = api.Failure(api.CodeConflict, "only a dead or a delayed job is tried again", "the job is %s", state)
	}
	out.Owner = &b.Owner
	j.changed(&out, c.Now, m.Box)
	result.Job = shown(m, b.Of)
	return result, out, err
}

func (j *Jobs) cancel(c *service.Call, p api.JobParams) (result api.JobResult, out service.Outcome, err error) {
	out.About = short(p.ID)
	m, b, err := owned(c, p.ID)
	if err != nil {
		return result, out, err
	}
	result.Job, out.Owner = shown(m, b.Of), &b.Owner
	switch result.Job.State {
	case api.JobDone:
		err = api.Failure(api.CodeConflict, "it goes when enough later ones are done", "the job is done")
	case api.JobDead:
		err = lease.Discard(c.Tx, b, m)
	default:
		if w := m.Work; w.Holder != "" && w.Until.IsZero() {
			j.Starter.Abort(w.Holder, &out)
		}
		err = lease.Cancel(c.Tx, b, m)
	}
	j.changed(&out, c.Now, m.Box)
	return result, out, err
}

// short is an id as the audit log has it.
func short(id string) string { return strings.ToValidUTF8(id[:min(len(id), 64)], "?") }
