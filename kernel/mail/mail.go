package mail

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Mail is the service.
type Mail struct {
	// Find returns the run of an owner with a name or id, or for an agent its child of that name; false: there
	// is none.
	Find func(c *service.Call, owner uint32, reference string) (agent.Run, bool)
	// Run returns a run by its id; nil: there is only the caller's.
	Run   func(agent.ID) (agent.Run, bool)
	Names Names
	// Subscribers has the runs that Names has for topics.
	Subscribers Subscribers
	Blobs       Blobs
}

// Blobs has bodies that are kept apart.
type Blobs interface {
	// Held returns the blob of an owner that a call names by its digest; empty: it names none. One that the
	// caller may not refer to is as one that there is not.
	Held(c *service.Call, owner uint32, digest string) (*api.Blob, error)
}

// Names has the runs behind names.
type Names interface {
	// Holders are the live runs that hold a name, in the order of their turns, and whether it is reserved.
	Holders(c *service.Call, owner uint32, namespace, name string) (runs []agent.Run, reserved bool, err error)
	// Took notes that a run has had its turn.
	Took(c *service.Call, owner uint32, namespace, name string, run agent.ID) error
	// Of are the names that a run holds.
	Of(tx *store.KernelTx, run agent.ID) ([]string, error)
	// Wakes refuses mail that is to wake a name for which no run can be started.
	Wakes(c *service.Call, owner uint32, namespace, name string) error
	// Wake has a run started for a name that no run holds, once.
	Wake(c *service.Call, owner uint32, namespace, name string, out *service.Outcome) error
}

// Subscribers are the runs behind topics.
type Subscribers interface {
	// Join gives the call's run a name, and Leave takes one from it.
	Join(c *service.Call, name string) error
	Leave(c *service.Call, name string) error
}

// Service returns its methods.
func (m Mail) Service() *service.Service {
	one := func(api.MailSendParams) (budget.Amounts, error) {
		return budget.Amounts{budget.Messages: 1}, nil
	}
	reply := func(api.MailReplyParams) (budget.Amounts, error) {
		return budget.Amounts{budget.Messages: 1}, nil
	}
	to := func(p api.MailSendParams) []string { return []string{string(grant.Send) + ":" + p.To} }
	return service.New("mail", lease.Tables()...).On(
		service.Claim(agents.MailSend, service.Stages[api.MailSendParams]{Covers: to, Costs: one, About: func(p api.MailSendParams) string { return p.To }}, place, m.there, m.send),
		service.Wait(agents.MailReceive, service.Stages[api.MailReceiveParams]{}, func(c *service.Call, _ api.MailReceiveParams) service.Topic { return topicOf(boxOf(c.Run)) }, receive).Idles(),
		service.Write(agents.MailAck, service.Stages[api.MailAckParams]{}, m.ack),
		service.Write(agents.MailReply, service.Stages[api.MailReplyParams]{Costs: reply}, m.reply),
		service.Wait(agents.MailAnswer, service.Stages[api.MailAnswerParams]{}, func(c *service.Call, _ api.MailAnswerParams) service.Topic { return topicOf(boxOf(c.Run)) }, answer),
		service.Read(methods.MailBoxes, service.Stages[api.MailBoxesParams]{}, m.boxes),
		service.Read(methods.MailRead, service.Stages[api.MailReadParams]{}, m.read),
		service.Write(methods.MailPost, service.Stages[api.MailPostParams]{}, m.post),
		service.Read(methods.MailDead, service.Stages[api.MailDeadParams]{}, m.dead),
		service.Write(methods.MailRequeue, service.Stages[api.MailLetterParams]{}, m.requeue),
		service.Write(methods.MailDiscard, service.Stages[api.MailLetterParams]{}, discard),
	).On(m.topicMethods()...)
}

func boxOf(run agent.Run) lease.Of { return lease.RunBox(run.Owner.UID, run.Spec.ID) }

func topicOf(box lease.Of) service.Topic { return service.Topic("mail/" + box.ID()) }

// Room is touched where a full mailbox of an owner may have place now, or a name means other ones.
func Room(owner uint32) service.Topic { return service.Topic(fmt.Sprintf("room/%d", owner)) }

// place is what a call of mail.send waits for that may wait.
func place(c *service.Call, p api.MailSendParams) service.Topic {
	if p.WaitMS == 0 {
		return ""
	}
	return Room(c.Run.Owner.UID)
}

// parent is the receiver that means the run which started the sender.
const parent = "parent"

// run returns a run by its id.
func (m Mail) run(c *service.Call, id agent.ID) (agent.Run, bool) {
	if m.Run == nil {
		return c.Run, id == c.Run.Spec.ID
	}
	return m.Run(id)
}

// Receiver is the run that the agent of a call means: of the holders of a name that whose turn it is.
func (m Mail) Receiver(c *service.Call, to string) (agent.Run, error) {
	owner, namespace := c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace
	if runs, _, err := m.Names.Holders(c, owner, namespace, to); err != nil || len(runs) > 0 {
		return append(runs, agent.Run{})[0], err
	}
	return m.receiver(c, owner, namespace, to)
}

// receiver is the run that a sender of an owner and namespace means.
func (m Mail) receiver(c *service.Call, owner uint32, namespace, to string) (run agent.Run, err error) {
	found := false
	switch {
	case to == parent && len(c.Run.Above) > 0:
		run, found = m.run(c, c.Run.Above[0].ID)
	case m.Find != nil:
		run, found = m.Find(c, owner, to)
		found = found && (!c.Agent || run.Spec.Kernel.Namespace == namespace)
	}
	if !found || run.State == agent.StateEnded {
		return run, api.Failure(api.CodeNotFound, "name a live run of the namespace, or parent", "no receiver %.128q", to)
	}
	if !run.Spec.Kernel.HasSocket() {
		return run, api.Failure(api.CodeConflict, "start it with --agent-socket", "%s has no socket of its own, and receives no mail", run.Spec.Name)
	}
	return run, nil
}

func (m Mail) send(c *service.Call, p api.MailSendParams) (result api.MailSendResult, out service.Outcome, err error) {
	out.About = p.To
	message, err := m.messageOf(c, c.Run.Owner.UID, p)
	if err != nil {
		return result, out, err
	}
	result, out, err = m.deliver(c, c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, message, out)
	if err != nil && p.WaitMS != 0 && api.ErrorOf(err).Data.Rule == api.RuleMailbox {
		err = service.ErrNotYet
	}
	result.WaitedMS = c.Waited().Milliseconds()
	return result, out, err
}

// there reports whether a message that may wait would find place.
func (m Mail) there(c *service.Call, p api.MailSendParams) error {
	runs, reserved, err := m.Names.Holders(c, c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, p.To)
	if err != nil {
		return err
	}
	var boxes []lease.Of
	switch {
	case len(runs) > 0:
		for _, run := range runs {
			boxes = append(boxes, boxOf(run))
		}
	case reserved:
		boxes = append(boxes, lease.NameBox(c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, p.To))
	default:
		run, err := m.receiver(c, c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, p.To)
		if err != nil {
			return nil // send has the refusal, also of a topic
		}
		boxes = append(boxes, boxOf(run))
	}
	for _, box := range boxes {
		if full, err := lease.Full(c.Tx, box, c.Now); err != nil || !full {
			return err
		}
	}
	return service.ErrNotYet
}

// messageOf reads a request about an owner's mail.
func (m Mail) messageOf(c *service.Call, owner uint32, p api.MailSendParams) (message *lease.Message, err error) {
	message = &lease.Message{Priority: p.Priority, Wake: p.Wake, Mail: api.Mail{To: p.To, Trace: cmp.Or(p.Trace, c.ID), Asks: p.Asks, Body: p.Body}}
	if message.Blob, err = m.Blobs.Held(c, owner, p.Blob); err != nil {
		return nil, err
	}
	if p.ExpiresMS != 0 {
		message.Expires = c.Now.Add(time.Duration(p.ExpiresMS) * time.Millisecond).UTC()
	}
	return message, lease.Check(message, p.ExpiresMS)
}

// deliver puts a message into the box of the receiver that it names: of the holders of a name that of the one
// whose turn it is and that has place, or the box of a reserved name that no run holds.
func (m Mail) deliver(c *service.Call, owner uint32, namespace string, message *lease.Message, out service.Outcome) (result api.MailSendResult, _ service.Outcome, err error) {
	if err := noTopic(message.To); err != nil {
		return result, out, err
	}
	runs, reserved, err := m.Names.Holders(c, owner, namespace, message.To)
	if err != nil {
		return result, out, err
	}
	if len(runs) == 0 && !reserved {
		run, err := m.receiver(c, owner, namespace, message.To)
		if err != nil {
			return result, out, err
		}
		if message.Wake {
			err = m.Names.Wakes(c, owner, namespace, message.To)
		}
		if err != nil {
			return result, out, err
		}
		return put(c, run, message, out)
	}
	if message.Wake {
		if err := m.Names.Wakes(c, owner, namespace, message.To); err != nil {
			return result, out, err
		}
	}
	message.Via = message.To
	if len(runs) == 0 {
		result, out, err = keep(c, lease.NameBox(owner, namespace, message.To), message, out)
		if err == nil && message.Wake {
			err = m.Names.Wake(c, owner, namespace, message.To, &out)
		}
		return result, out, err
	}
	for _, run := range runs {
		var sent service.Outcome
		if result, sent, err = put(c, run, message, out); err == nil {
			return result, sent, m.Names.Took(c, owner, namespace, message.To, run.Spec.ID)
		}
		if api.ErrorOf(err).Data.Rule != api.RuleMailbox {
			break
		}
	}
	return result, out, err
}

// put puts a message of the caller's into the box of a run, and tells that one.
func put(c *service.Call, to agent.Run, m *lease.Message, out service.Outcome) (api.MailSendResult, service.Outcome, error) {
	result, sent, err := keep(c, boxOf(to), m, out)
	if err == nil {
		told(&sent, to.Spec.ID, boxOf(to), m.Sender)
	}
	return result, sent, err
}

// told notes that a message has come into the box of a run.
func told(out *service.Outcome, run agent.ID, box lease.Of, sender string) {
	out.Topics = append(out.Topics, topicOf(box))
	out.Notify(run, service.Notice{Kind: api.NoteMail, Params: api.MailNote{Sender: sender}})
}

// keep puts a message of the caller's into a box.
func keep(c *service.Call, box lease.Of, m *lease.Message, out service.Outcome) (api.MailSendResult, service.Outcome, error) {
	m.From, m.Sender, m.Sent, m.Causation = c.Run.Spec.ID, cmp.Or(c.Run.Spec.Name, c.Principal()), c.Now.UTC(), c.ID
	if err := lease.Put(c.Tx, box, m); err != nil {
		return api.MailSendResult{}, out, err
	}
	out.Object = m.ID
	return api.MailSendResult{ID: m.ID, Trace: m.Trace}, out, nil
}

// receivedMost bounds the messages of one answer; with the longest bodies one fits into a line.
const receivedMost = 64

func receive(c *service.Call, p api.MailReceiveParams) (result api.MailReceiveResult, out service.Outcome, err error) {
	if p.Most < 0 || p.Most > receivedMost {
		return result, out, api.Failure(api.CodeParams, "", "ask for 1 to %d messages", receivedMost)
	}
	all, err := lease.Next(c.Tx, boxOf(c.Run), p.After, max(1, p.Most), c.Now)
	if err != nil {
		return result, out, err
	}
	size := 0
	for _, m := range all {
		if size += len(m.Body); size > api.BodyMost && len(result.Messages) > 0 {
			break
		}
		result.Messages = append(result.Messages, m.Mail)
	}
	if len(result.Messages) == 0 {
		err = service.ErrNotYet
	}
	return result, out, err
}

func (m Mail) ack(c *service.Call, p api.MailAckParams) (result api.MailAckResult, out service.Outcome, err error) {
	if len(p.IDs) == 0 || len(p.IDs) > receivedMost {
		return result, out, api.Failure(api.CodeParams, "", "name 1 to %d messages", receivedMost)
	}
	if err := agent.ValidateReason(p.Reject); err != nil {
		return result, out, err
	}
	out.Reason = p.Reject
	box := boxOf(c.Run)
	if err := room(c, box, &out); err != nil {
		return result, out, err
	}
	var blobs []*api.Blob // the calls in then may still name them
	for _, id := range p.IDs {
		taken, err := lease.Take(c.Tx, box, id)
		if err == nil && taken == nil {
			err = noMessage(id)
		}
		if err == nil && out.Causation == "" {
			out.Causation = taken.Causation
		}
		if err == nil && len(p.Then) > 0 {
			blobs = append(blobs, taken.Blob)
			err = blob.Refer(c.Tx, box.Owner, box.Holder(), taken.Blob)
		}
		if err == nil && p.Reject != "" {
			err = lease.Bury(c.Tx, box, taken, "rejected: "+p.Reject, c.Now)
		}
		if err != nil {
			return result, out, err
		}
	}
	out.Object = strings.Join(p.IDs, " ") // from now on they are no text of the agent's
	held, err := m.Names.Of(c.Tx, c.Run.Spec.ID)
	for _, name := range held { // more than there was place for
		err = cmp.Or(err, Collect(c, name, &out))
	}
	if err != nil {
		return result, out, err
	}
	results, more, err := c.Then(p.Then)
	for _, b := range blobs {
		err = cmp.Or(err, blob.Drop(c.Tx, box.Owner, box.Holder(), b))
	}
	result.Results = results
	out.Add(more)
	return result, out, err
}

// room has senders look again that wait for place in a full box from which the call takes something.
func room(c *service.Call, box lease.Of, out *service.Outcome) error {
	full, err := lease.Full(c.Tx, box, c.Now)
	if full {
		out.Topics = append(out.Topics, Room(box.Owner))
	}
	return err
}

func noMessage(id string) error {
	return api.Failure(api.CodeNotFound, "mail.receive has the messages that are not acknowledged", "no message %.64q in the mailbox", id)
}

func (m Mail) reply(c *service.Call, p api.MailReplyParams) (result api.MailSendResult, out service.Outcome, err error) {
	box := boxOf(c.Run)
	asked, err := lease.Find(c.Tx, box, p.ID)
	switch {
	case err != nil:
		return result, out, err
	case asked == nil:
		return result, out, noMessage(p.ID)
	case !asked.Asks:
		return result, out, api.Failure(api.CodeConflict, "", "message %.64q does not ask, or has its answer", p.ID)
	}
	asker, found := m.run(c, asked.From)
	if !found || asker.State == agent.StateEnded {
		return result, out, api.Failure(api.CodeNotFound, "acknowledge it", "%s, which asked, has ended", asked.Sender)
	}
	reply := &lease.Message{Priority: asked.Priority, Mail: api.Mail{To: asked.Sender, Trace: asked.Trace, Answers: asked.Asked(), Body: p.Body}}
	if reply.Blob, err = m.Blobs.Held(c, c.Run.Owner.UID, p.Blob); err == nil {
		err = lease.CheckBody(reply)
	}
	if err != nil {
		return result, out, err
	}
	asked.Asks = false
	if p.Ack {
		if err = room(c, box, &out); err == nil {
			_, err = lease.Take(c.Tx, box, asked.ID)
		}
	} else {
		err = lease.Messages.Put(c.Tx, asked)
	}
	if err != nil {
		return result, out, err
	}
	out.About, out.Causation = asked.Sender, asked.Causation
	return put(c, asker, reply, out)
}

func answer(c *service.Call, p api.MailAnswerParams) (result api.MailAnswerResult, out service.Outcome, err error) {
	if !lease.IsID(p.ID) {
		return result, out, noMessage(p.ID)
	}
	m, err := lease.Answer(c.Tx, boxOf(c.Run), p.ID)
	if err == nil && m == nil {
		err = service.ErrNotYet
	}
	if err == nil {
		result.Message = m.Mail
	}
	return result, out, err
}

// Forget removes the mailbox of a run.
func Forget(tx *store.KernelTx, owner uint32, run agent.ID) error {
	return lease.Forget(tx, lease.RunBox(owner, run))
}
