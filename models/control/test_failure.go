package control

import (
	"fmt"

	"clove.run/clove/api"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// failureOf says why a test failed, and what an administrator does about it; nil: it did not.
func failureOf(t config.Target, d link.Done, said string) *api.ModelFailure {
	if d.Status == 0 || d.Fault != "" {
		return noAnswer(t.Provider, d)
	}
	if d.Status == statusOK && d.Complete && d.Error == "" {
		return nil
	}
	f := wrongAnswer(t, d)
	if said != "" {
		f.Message += fmt.Sprintf(": it says %q", said)
	}
	return f
}

// noAnswer is for a provider that was not reached or said nothing.
func noAnswer(p *config.Provider, d link.Done) *api.ModelFailure {
	switch d.Fault {
	case link.FaultDial:
		return &api.ModelFailure{Reason: api.FailedUnreachable, Message: p.URL + " cannot be reached: " + d.Detail,
			Hint: "check url of the provider " + p.Name + " in models.yaml, and that this host can connect to it"}
	case link.FaultTLS:
		return &api.ModelFailure{Reason: api.FailedTLS, Message: "TLS with " + p.Host() + " fails: " + d.Detail,
			Hint: "the certificate must have this name, and be of an authority that this host knows or that ca of the provider " + p.Name + " in models.yaml names"}
	case link.FaultTime:
		return &api.ModelFailure{Reason: api.FailedTimeout, Message: p.URL + " does not answer in time", Hint: "try again; timeouts of the provider " + p.Name + " in models.yaml sets the times"}
	}
	return &api.ModelFailure{Reason: api.FailedLost, Message: p.URL + " ends the connection without an answer", Hint: "check url of the provider " + p.Name + " in models.yaml"}
}

// wrongAnswer is for an answer that is an error, or is none in the format.
func wrongAnswer(t config.Target, d link.Done) *api.ModelFailure {
	p, status := t.Provider, fmt.Sprintf("%s answers with status %d", t.Provider.URL, d.Status)
	switch {
	case d.Status == statusUnauthorized || d.Status == statusForbidden:
		return &api.ModelFailure{Reason: api.FailedKey, Message: status + " to the key", Hint: keyHint(p)}
	case d.Status == statusBad && p.Subscription != nil:
		return &api.ModelFailure{Reason: api.FailedRefused, Message: status, Hint: "the service of a subscription may refuse what is not from its client: try " + p.Subscription.Client + " itself in a run"}
	case d.Status == statusNotFound:
		return &api.ModelFailure{Reason: api.FailedName, Message: fmt.Sprintf("%s to the model %q", status, t.Model),
			Hint: "check the model's name in its target, and url of the provider " + p.Name + ": with /v1 for openai, without for anthropic"}
	case d.Status == statusTooMany || d.Status >= statusFailed:
		return &api.ModelFailure{Reason: api.FailedBusy, Message: status, Hint: "try again later, or look at the provider's own limits"}
	case d.Status >= statusBad:
		return &api.ModelFailure{Reason: api.FailedRefused, Message: status, Hint: "what it says is about the request or the account; family of the provider " + p.Name + " says which format it is asked in"}
	case d.Status >= statusRedirect:
		return &api.ModelFailure{Reason: api.FailedRedirect, Message: status + ", a redirection, which is not followed", Hint: "write where it leads into url of the provider " + p.Name}
	case d.Error != "":
		return &api.ModelFailure{Reason: api.FailedBroken, Message: "the answer of " + p.URL + " is not whole: " + d.Error, Hint: "try again"}
	}
	return &api.ModelFailure{Reason: api.FailedBroken, Message: "the answer of " + p.URL + " is not one of the family " + string(p.Family), Hint: "check family and url of the provider " + p.Name + " in models.yaml"}
}

// keyHint says where the key is. What is in it stands nowhere.
func keyHint(p *config.Provider) string {
	if p.Key == "" {
		return fmt.Sprintf("no key is sent: write it into %s/%s (mode 0600), and key: %s into the provider %s of models.yaml", SecretsDir, p.Name, p.Name, p.Name)
	}
	if name, secret := p.Secret(); secret && p.Subscription != nil {
		return "on the host, give it a new token (" + p.Subscription.Renew + "): clove secret rotate " + name
	} else if secret {
		return "give it the right key: clove secret rotate " + name + ", and the next call has it"
	}
	hint := "write the right key into "
	if p.Subscription != nil {
		hint = "on the host, write a new token (" + p.Subscription.Renew + ") into "
	}
	return hint + SecretsDir + "/" + p.Key + " (or the systemd credential of this name): the next call reads it"
}
