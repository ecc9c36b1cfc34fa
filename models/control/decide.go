package control

import (
	"errors"
	"slices"

	"clove.run/clove/api"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// maxAnswers bounds the answers that one call asks for.
const maxAnswers = 128

// needs are the rights that a call may need beside its model's. Each is one of the grant's.
var needs = []models.Need{models.ProviderTools, models.ProviderState}

// senseless answers what no honest clove-models asks.
const senseless = "the call makes no sense"

// sensible reports whether an honest clove-models may have sent b. What goes on to other
// processes is short and plain.
func sensible(b link.Begin) bool {
	if len(b.Model) > link.MaxName || len(b.Run) > link.MaxName {
		return false
	}
	for _, words := range [][]string{b.Tiers, b.Betas} {
		if len(words) > link.MaxWords || slices.ContainsFunc(words, func(w string) bool { return !link.IsWord(w) }) {
			return false
		}
	}
	for _, need := range b.Needs {
		if !slices.Contains(needs, need) {
			return false
		}
	}
	if b.Trace != "" && !link.IsTraceparent(b.Trace) {
		return false
	}
	return b.In >= 0 && len(b.Needs) <= len(needs) && min(b.Out, b.Least) >= 0 && b.N >= 1 && b.N <= maxAnswers && max(b.In, b.Out, b.Least) <= maxTokens && b.Format.Family() != "" && models.ArePassed(b.Format, b.Headers)
}

// allowed refuses what no grant covers, before the call waits for its turn.
func (k *call) allowed() *link.Refuse {
	if refusal := k.covered(k.what()); refusal != nil {
		return refusal
	}
	for _, need := range k.begin.Needs {
		if refusal := k.covered(k.what(need)); refusal != nil {
			refusal.Reason, refusal.Hint = link.ReasonNeed, "leave the field out, or ask for the grant "+k.what(need)
			return refusal
		}
	}
	for _, need := range needs {
		if ok, err := k.desk.Ledger.Allowed(k.served.run, k.what(need)); ok && err == nil {
			k.granted = append(k.granted, need)
		}
	}
	return nil
}

// covered refuses what no grant of the run covers.
func (k *call) covered(what string) *link.Refuse {
	ok, err := k.desk.Ledger.Allowed(k.served.run, what)
	if err == nil && ok {
		return nil
	}
	if err != nil {
		return refusalOf(err)
	}
	// Reserve says why, and records the refusal.
	reservation, err := k.desk.Ledger.Reserve(k.served.run, ledger.Spending{Service: Service, Method: "model.call", What: what})
	if err == nil { // it was granted meanwhile
		_ = k.desk.Ledger.Settle(k.served.run, ledger.Settlement{Service: Service, Reservation: reservation}) // else the end of the run settles it
		return refuse(link.ReasonBusy, "the grants have changed", "ask again")
	}
	return refusalOf(err)
}

// choose chooses who answers, and notes who else may.
func (k *call) choose() *link.Refuse {
	b, s := k.begin, k.served
	targets, err := k.desk.Config().Resolve(b.Model, s.run.Owner.UID, s.groups)
	var unknown *config.UnknownModelError
	switch {
	case errors.As(err, &unknown):
		return refuse(link.ReasonUnknown, err.Error(), "")
	case err != nil:
		return refuse(link.ReasonNotGranted, err.Error(), "")
	}
	targets = slices.DeleteFunc(targets, func(t config.Target) bool { return !t.Provider.Speaks(b.Format) })
	if len(targets) == 0 {
		return refuse(link.ReasonUnknown, "the model "+b.Model+" does not speak "+string(b.Format), "call it with a client of its own format")
	}
	at := k.desk.health.choose(s.caller(), targets)
	k.target = targets[at]
	k.others = slices.DeleteFunc(slices.Delete(targets, at, at+1), func(t config.Target) bool {
		return routeName(t) == routeName(k.target) || k.unsuited(t) != nil
	})
	return k.unsuited(k.target)
}

// unsuited says why a target cannot serve a call.
func (k *call) unsuited(t config.Target) *link.Refuse {
	if t.Context > 0 && k.begin.In > t.Context {
		return refuse(link.ReasonContext, "the request is longer than the context of "+t.Name, "")
	}
	return nil
}

func refuse(reason link.Reason, message, hint string) *link.Refuse {
	return &link.Refuse{Reason: reason, Message: message, Hint: hint}
}

// refusal says why a call of a model is not made; nil: it is.
func refusal(model string, err error) *link.Refuse {
	var crowded *crowdedError
	switch {
	case errors.Is(err, errHeld), errors.As(err, &crowded):
		return &link.Refuse{Reason: link.ReasonBusy, Message: err.Error(), After: 1}
	case errors.Is(err, errNoPrice):
		return refuse(link.ReasonNoPrice, "no price of "+model+" is known, and what may be spent is limited", "add one to /etc/clove/models.yaml")
	}
	return refusalOf(err)
}

// refusalOf says why nothing was reserved.
func refusalOf(err error) *link.Refuse {
	if err == nil {
		return nil
	}
	e := api.ErrorOf(err)
	switch e.Code {
	case api.CodeDenied:
		return refuse(link.ReasonNotGranted, e.Message, e.Data.Hint)
	case api.CodeBudget:
		return refuse(link.ReasonBudget, e.Message, e.Data.Hint)
	case api.CodeBusy:
		return refuse(link.ReasonBusy, e.Message, e.Data.Hint)
	}
	return refuse(link.ReasonFailed, e.Message, e.Data.Hint)
}
