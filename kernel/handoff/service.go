package handoff

import (
	"bytes"
	"cmp"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Grants decides which grants change hands.
type Grants interface {
	Cover(c *service.Call, what string) (rule string, err error)
	Use(c *service.Call, rule string) error
	// Live reports whether a run still has a grant.
	Live(c *service.Call, holder agent.ID, id string) (bool, error)
	// Related returns a live run, and whether the call's run is above it.
	Related(c *service.Call, id agent.ID) (run agent.Run, below, found bool)
	HandOver(c *service.Call, from agent.ID, to agent.Run, parts []api.HandoffGrant) ([]api.Grant, service.Outcome, error)
}

// Accounts decides which reservations change hands.
type Accounts interface {
	Reserved(tx *store.KernelTx, run agent.ID, id string) (map[string]int64, error)
	HandOver(c *service.Call, from agent.ID, to agent.Run, id string) (handed string, out service.Outcome, err error)
}

// Service serves the methods.
type Service struct {
	Grants   Grants
	Accounts Accounts
	// Receiver returns the run that the agent of a call means by a name or an id, as mail to it does.
	Receiver func(c *service.Call, to string) (agent.Run, error)
}

// Service returns its methods.
func (s *Service) Service() *service.Service {
	return service.New("handoff", Offers).On(
		service.Write(agents.AgentHandoff, service.Stages[api.HandoffParams]{}, s.handoff),
		service.Write(agents.AgentAccept, service.Stages[api.AcceptParams]{}, s.accept),
		service.Write(agents.AgentWithdraw, service.Stages[api.WithdrawParams]{About: func(p api.WithdrawParams) string { return "offer " + short(p.Offer) }}, s.withdraw),
		service.Wait(agents.AgentOffers, service.Stages[api.OfferListParams]{}, func(c *service.Call, _ api.OfferListParams) service.Topic { return topic(c.Run.Spec.ID) }, s.offers),
	)
}

// topic is touched by each new offer to a run.
func topic(run agent.ID) service.Topic { return service.Topic("offers/" + string(run)) }

func (s *Service) handoff(c *service.Call, p api.HandoffParams) (result api.HandoffResult, out service.Outcome, err error) {
	out.About = "to " + short(p.To)
	o, err := offerOf(c, p)
	if err != nil {
		return result, out, err
	}
	id := agent.ID(p.To)
	if !id.Valid() {
		named, err := s.Receiver(c, p.To)
		if err != nil {
			return result, out, noReceiver(p.To)
		}
		id = named.Spec.ID
	}
	to, below, found := s.Grants.Related(c, id)
	if o.To = to.Spec.ID; !below {
		o.Send, err = s.mayOffer(c, to, found, p.To)
	}
	if err == nil {
		err = forget(c, o.To, c.Run.Spec.ID)
	}
	if err == nil && o.Reservation != "" {
		_, err = s.Accounts.Reserved(c.Tx, c.Run.Spec.ID, o.Reservation)
	}
	if err == nil && below {
		err = s.move(c, &o, to, &out)
	}
	if err == nil {
		err = Offers.Put(c.Tx, &o)
	}
	if err != nil {
		return result, out, err
	}
	out.Rule = o.Send
	out.Topics = append(out.Topics, topic(o.To))
	out.Notify(o.To, service.Notice{Kind: api.NoteOffer, Key: o.ID, Params: api.OfferNote{Offer: o.ID, From: o.From}})
	return api.HandoffResult{Offer: o.ID, Handed: o.Handed}, out, record(c, o, to, agents.AgentHandoff.Name)
}

// offerOf reads a request.
func offerOf(c *service.Call, p api.HandoffParams) (o offer, err error) {
	o = offer{ID: string(agent.NewID()), From: c.Run.Spec.ID, Name: c.Run.Spec.Name, Grants: p.Grants, Reservation: p.Reservation, Created: c.Now, Expires: p.Expires}
	if len(p.Task) == 0 || bytes.Equal(p.Task, []byte("null")) {
		return o, api.Failure(api.CodeParams, `say for example "task":"review the report"`, "there is no task")
	}
	if o.Task, err = api.Compacted("a task", p.Task); err != nil {
		return o, err
	}
	if o.Expires.IsZero() {
		o.Expires = c.Now.Add(lasts)
	}
	switch {
	case len(o.Grants) > grantsMost:
		err = api.Failure(api.CodeParams, "hand over the others with another task", "%d grants are more than %d", len(o.Grants), grantsMost)
	case o.over(c.Now) || o.Expires.After(c.Now.Add(lastsMost)):
		err = api.Failure(api.CodeParams, "leave it out for an hour", "an offer ends after at most %s", lastsMost)
	}
	return o, err
}

// mayOffer returns the grant by which the agent offers to a run that is not below its own, and
// counts a use of it. Without one, the answer is that of a run that there is not.
func (s *Service) mayOffer(c *service.Call, to agent.Run, found bool, named string) (rule string, err error) {
	if found && to.Owner.UID == c.Run.Owner.UID && to.Spec.Kernel.Namespace == c.Run.Spec.Kernel.Namespace && to.Spec.Kernel.HasSocket() {
		name := named
		if agent.ID(named).Valid() {
			name = to.Spec.Name
		}
		rule, err = s.Grants.Cover(c, "send:"+name)
		if err == nil {
			return rule, s.Grants.Use(c, rule)
		}
	}
	return "", noReceiver(named)
}

func noReceiver(named string) error {
	return api.Failure(api.CodeNotFound, "name a live run below this one, or one of the same namespace for which there is a grant send:NAME", "no run %.64q", named).By(service.StageGrant, api.RuleOwnRun)
}

// move hands over what goes with an offer.
func (s *Service) move(c *service.Call, o *offer, to agent.Run, out *service.Outcome) error {
	given, more, err := s.Grants.HandOver(c, o.From, to, o.Grants)
	if err != nil {
		return err
	}
	out.Add(more)
	if o.Reservation != "" {
		if o.Reservation, more, err = s.Accounts.HandOver(c, o.From, to, o.Reservation); err != nil {
			return err
		}
		out.Add(more)
	}
	o.Handed, o.Given = true, given
	return nil
}

func (s *Service) accept(c *service.Call, p api.AcceptParams) (result api.AcceptResult, out service.Outcome, err error) {
	out.About = "offer " + short(p.Offer)
	o, err := Offers.Get(c.Tx, store.RunKey(c.Run.Spec.ID, p.Offer))
	if err != nil {
		return result, out, err
	}
	if o == nil || o.over(c.Now) {
		return result, out, noOffer(p.Offer)
	}
	giver, _, lives := s.Grants.Related(c, o.From)
	if !lives {
		return result, out, noOffer(p.Offer)
	}
	if !o.Handed {
		if err := s.stillSends(c, o); err != nil {
			return result, out, err
		}
		if err := s.move(c, o, c.Run, &out); err != nil {
			return result, out, err
		}
	}
	if err := Offers.Delete(c.Tx, store.RunKey(o.To, o.ID)); err != nil {
		return result, out, err
	}
	out.Notify(o.From, service.Notice{Kind: api.NoteAccepted, Key: o.ID, Params: api.AcceptedNote{Offer: o.ID, To: o.To}})
	return api.AcceptResult{Task: o.Task, From: o.From, Grants: o.Given, Reservation: o.Reservation}, out, record(c, *o, giver, agents.AgentAccept.Name)
}

// withdraw takes an offer of the run's back before it is accepted. What has changed hands stays where it is.
func (s *Service) withdraw(c *service.Call, p api.WithdrawParams) (none api.Nothing, out service.Outcome, err error) {
	made, err := Offers.Indexed(c.Tx, byGiver, string(c.Run.Spec.ID))
	at := slices.IndexFunc(made, func(o *offer) bool { return o.ID == p.Offer && !o.over(c.Now) })
	switch {
	case err != nil:
		return none, out, err
	case at < 0:
		return none, out, api.Failure(api.CodeNotFound, "it may have been accepted, or have expired", "the run has no open offer %.64q", p.Offer)
	case made[at].Handed && (len(made[at].Given) > 0 || made[at].Reservation != ""):
		return none, out, api.Failure(api.CodeConflict, "end the run with agent.signal, or ask it with mail.send", "what goes with the offer is the other run's already")
	}
	return none, out, Offers.Delete(c.Tx, store.RunKey(made[at].To, made[at].ID))
}

func noOffer(id string) error {
	return api.Failure(api.CodeNotFound, "agent.offers lists those that there are: each is accepted once, until it expires or the giver ends", "no offer %.64q", id)
}

// stillSends refuses an offer whose giver has lost the grant that let it send.
func (s *Service) stillSends(c *service.Call, o *offer) error {
	live, err := s.Grants.Live(c, o.From, o.Send)
	if err == nil && !live {
		err = api.Failure(api.CodeDenied, "ask the giver for another offer", "the grant by which %s made the offer is gone", o.Name).By(service.StageGrant, api.RuleGrant+o.Send)
	}
	return err
}

// record adds the entry of the other side to the call's own: what the call has done to its run.
func record(c *service.Call, o offer, other agent.Run, method string) error {
	side := service.Call{Caller: service.Caller{Run: other, ID: c.ID}, Now: c.Now}
	e := side.Entry(method, "offer "+o.ID+" of "+string(o.From)+" to "+string(o.To), audit.VerdictAllow)
	e.Kind, e.Principal, e.Digest = audit.KindDecision, c.Principal(), service.Digest(method, e.What)
	return service.Record(c.Tx, e)
}

func (s *Service) offers(c *service.Call, p api.OfferListParams) (result api.OfferListResult, out service.Outcome, err error) {
	page, next, err := Offers.Page(c.Tx, store.RunKey(c.Run.Spec.ID, ""), store.RunKey(c.Run.Spec.ID, p.After), offersInAnswer)
	result.Offers = []api.Offer{}
	for _, o := range page {
		if err != nil {
			return result, out, err
		}
		if o.over(c.Now) {
			continue
		}
		var a api.Offer
		a, err = s.shown(c.Tx, o)
		result.Offers = append(result.Offers, a)
	}
	if next != "" {
		result.Next = page[len(page)-1].ID
	}
	if err == nil && p.Wait && len(result.Offers) == 0 && next == "" {
		err = service.ErrNotYet
	}
	return result, out, err
}

// short bounds what a caller named, for the audit log.
func short(text string) string { return cmp.Or(text[:min(len(text), 64)], "none") }
