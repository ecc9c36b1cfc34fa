package mail

import (
	"cmp"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
)

// Bounds of answers to users.
const (
	boxesInPart = 100
	mailInPart  = 16 // with the longest bodies it fits into a line of theirs
)

// owners refuses a user that names another one, and reports of which boxes a call is. Those of jobs have calls of
// their own.
func owners(c *service.Call, named *uint32) (is func(*lease.Box) bool, err error) {
	if named != nil && *named != c.UID && !c.Root() {
		return nil, api.Failure(api.CodeDenied, "leave the owner out", "only root names another user")
	}
	return func(b *lease.Box) bool {
		return b != nil && b.Kind != lease.OfQueue && (c.Root() || b.Owner == c.UID) && (named == nil || b.Owner == *named)
	}, nil
}

// shown is a box as users see it.
func (m Mail) shown(b *lease.Box) api.Mailbox {
	a := api.Mailbox{ID: b.ID(), Owner: b.Owner, Namespace: b.Namespace, Kind: string(b.Kind), Name: b.Name, Messages: b.Messages, Dead: b.Dead, Expires: b.Expires}
	if b.Kind == lease.OfRun {
		a.Run = agent.ID(b.Name)
		if run, found := m.Run(a.Run); found {
			a.Name, a.Namespace = run.Spec.Name, run.Spec.Kernel.Namespace
		}
	}
	return a
}

func (m Mail) boxes(c *service.Call, p api.MailBoxesParams) (result api.MailBoxesResult, out service.Outcome, err error) {
	is, err := owners(c, p.Owner)
	result.Mailboxes = []api.Mailbox{}
	for after := p.After; err == nil; {
		var page []*lease.Box
		page, after, err = lease.Boxes.Page(c.Tx, "", after, boxesInPart-len(result.Mailboxes))
		for _, b := range page {
			if is(b) {
				result.Mailboxes = append(result.Mailboxes, m.shown(b))
			}
		}
		if result.Next = after; after == "" || len(result.Mailboxes) == boxesInPart {
			break
		}
	}
	slices.SortFunc(result.Mailboxes, func(a, b api.Mailbox) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return result, out, err
}

// named is the box that a user means.
func (m Mail) named(c *service.Call, owner *uint32, reference string) (found *lease.Box, err error) {
	is, err := owners(c, owner)
	if err != nil {
		return nil, err
	}
	all, err := m.candidates(c, reference)
	for _, b := range all {
		a := m.shown(b)
		if !is(b) || !slices.Contains([]string{a.ID, a.Name, string(a.Run)}, reference) || found != nil && found.Of == b.Of {
			continue
		}
		if found != nil {
			return nil, api.Failure(api.CodeConflict, "name it by its id, which clove mail list --json has", "several mailboxes have the name %.64q", reference)
		}
		found = b
	}
	if err == nil && found == nil {
		err = api.Failure(api.CodeNotFound, "clove mail list has those that there are: a run has one from the first message to it on", "no mailbox %.64q", reference)
	}
	return found, err
}

// candidates are the boxes that a reference may mean, as ids, names and runs, without a look at all boxes. One
// may be there twice.
func (m Mail) candidates(c *service.Call, reference string) (all []*lease.Box, err error) {
	if reference == "" {
		return nil, nil
	}
	owners, err := lease.Counted(c.Tx)
	ids := []string{reference}
	for owner := range owners {
		if !c.Root() && owner != c.UID {
			continue
		}
		named, nerr := lease.Named(c.Tx, owner, reference)
		err, all = cmp.Or(err, nerr), append(all, named...)
		ids = append(ids, lease.RunBox(owner, agent.ID(reference)).ID())
		if m.Find == nil {
			continue
		}
		if run, found := m.Find(c, owner, reference); found {
			ids = append(ids, lease.RunBox(owner, run.Spec.ID).ID())
		}
	}
	for _, id := range ids {
		box, berr := lease.Boxes.Get(c.Tx, id)
		if err = cmp.Or(err, berr); box != nil {
			all = append(all, box)
		}
	}
	return all, err
}

func (m Mail) read(c *service.Call, p api.MailReadParams) (result api.MailReadResult, out service.Outcome, err error) {
	result.Messages = []api.Mail{}
	box, err := m.named(c, p.Owner, p.Mailbox)
	if err != nil {
		return result, out, err
	}
	page, next, err := lease.Messages.Page(c.Tx, box.ID()+"/", p.After, mailInPart)
	for _, message := range page {
		result.Messages = append(result.Messages, message.Mail)
	}
	result.Next = next
	seen(c, box, &out)
	return result, out, err
}

// seen records that root reads what is another user's.
func seen(c *service.Call, box *lease.Box, out *service.Outcome) {
	if box.Owner != c.UID {
		out.About, out.Owner, out.Verdict = box.Name, &box.Owner, audit.VerdictAllow
	}
}

func (m Mail) post(c *service.Call, p api.MailPostParams) (result api.MailSendResult, out service.Outcome, err error) {
	out.About = p.To
	if _, err = owners(c, p.Owner); err != nil {
		return result, out, err
	}
	if p.Owner == nil {
		p.Owner = &c.UID
	}
	out.Owner = p.Owner
	message, err := m.messageOf(c, *p.Owner, api.MailSendParams{To: p.To, Body: p.Body, Blob: p.Blob, Priority: p.Priority, ExpiresMS: p.ExpiresMS, Wake: p.Wake})
	if err != nil {
		return result, out, err
	}
	return m.deliver(c, *p.Owner, p.Namespace, message, out)
}

func (m Mail) dead(c *service.Call, p api.MailDeadParams) (result api.MailDeadResult, out service.Outcome, err error) {
	is, err := owners(c, p.Owner)
	below := ""
	if err == nil && p.Mailbox != "" {
		var box *lease.Box
		if box, err = m.named(c, p.Owner, p.Mailbox); err == nil {
			below = box.ID() + "/"
		}
	}
	result.Letters = []api.DeadLetter{}
	for after := p.After; err == nil; {
		var page []*lease.Message
		page, after, err = lease.Letters.Page(c.Tx, below, after, mailInPart-len(result.Letters))
		for _, letter := range page {
			box, boxErr := lease.Boxes.Get(c.Tx, letter.Box)
			if err = cmp.Or(err, boxErr); is(box) {
				seen(c, box, &out)
				result.Letters = append(result.Letters, api.DeadLetter{Letter: letter.ID, Mail: letter.Mail, Mailbox: letter.Box, Why: letter.Dead, Died: letter.Died})
			}
		}
		if result.Next = after; after == "" || len(result.Letters) == mailInPart {
			break
		}
	}
	return result, out, err
}

// letter is the dead letter of the caller's that a user means, and its box.
func letter(c *service.Call, id string) (m *lease.Message, box *lease.Box, err error) {
	is, _ := owners(c, nil) // it names no other user
	if box, err = lease.BoxOf(c.Tx, id); err == nil && is(box) {
		m, err = lease.Letters.Get(c.Tx, id)
	}
	if err == nil && m == nil {
		err = api.Failure(api.CodeNotFound, "clove mail dead lists them", "no dead letter %.64q", id)
	}
	return m, box, err
}

func (m Mail) requeue(c *service.Call, p api.MailLetterParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = short(p.ID)
	message, box, err := letter(c, p.ID)
	if err != nil {
		return none, out, err
	}
	out.Owner = &box.Owner
	if err := lease.Requeue(c.Tx, box, message); err != nil {
		return none, out, err
	}
	if box.Kind == lease.OfRun {
		told(&out, agent.ID(box.Name), box.Of, message.Sender)
		return none, out, nil
	}
	runs, _, err := m.Names.Holders(c, box.Owner, box.Namespace, box.Name)
	for _, run := range runs {
		moved := 0
		if err == nil {
			moved, err = lease.Move(c.Tx, box.Of, boxOf(run), c.Now, func(one *lease.Message) bool { return one.ID == message.ID })
		}
		if moved > 0 {
			told(&out, run.Spec.ID, boxOf(run), message.Sender)
			break
		}
	}
	return none, out, err
}

func discard(c *service.Call, p api.MailLetterParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = short(p.ID)
	message, box, err := letter(c, p.ID)
	if err != nil {
		return none, out, err
	}
	out.Owner = &box.Owner
	return none, out, lease.Discard(c.Tx, box, message)
}

// short is an id as the audit log has it.
func short(id string) string { return strings.ToValidUTF8(id[:min(len(id), 64)], "?") }
