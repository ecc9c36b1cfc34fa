package secrets

// DenialHints say what to do about a request that was refused, or that left with a placeholder, by its reason in the record
// (egress/swap/link).
var DenialHints = map[string]string{
	"rule":        "clove secret list shows the requests that it is for",
	"place":       "clove secret set --header or --in says where the secret may be",
	"foreign":     "the placeholder is of another start of a run, or its secret is for other hosts",
	"form":        "a server could read it as another request: docs/secrets.md has what is refused",
	"name":        "one connection is for one host: the name in TLS and in the request has to be that one",
	"use":         "clove secret list shows its end and its uses, clove grant list whether the run has a grant of it",
	"certificate": "root may name the authority of its hosts: clove secret set --ca",
	"trust":       "it has authorities compiled in, pins certificates, or reads another file than its variable or the distribution's: docs/secrets.md has a table. A run without a secret for the host reaches it directly",
	"client":      "a host that wants a certificate of its clients cannot have a secret: set the secret without this host",
	"fail closed": "start the run again to use its secrets",
}
