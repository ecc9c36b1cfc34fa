package agent

import (
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/secrets"
)

// secretsMost bounds the placeholders of a run.
const secretsMost = 64

// ReadableSecrets are the secrets that the agent reads in files, by their names.
func (k Kernel) ReadableSecrets() (names []string) {
	for _, text := range k.Secrets {
		if m, err := secrets.ParseMount(text); err == nil && m.As == secrets.MountPlain {
			names = append(names, m.Secret)
		}
	}
	return names
}

// SwapsSecrets reports whether the agent has a placeholder, for which there is an authority of the run's.
func (k Kernel) SwapsSecrets() bool {
	return slices.ContainsFunc(k.Secrets, func(text string) bool {
		m, err := secrets.ParseMount(text)
		return err == nil && m.As != secrets.MountPlain && m.As != secrets.MountSSH
	})
}

// checkSecrets refuses placeholders that the agent could not use, and two for one place.
func checkSecrets(s Spec) error {
	const field = "kernel.secrets"
	k := s.Kernel
	switch {
	case len(k.Secrets) == 0:
		return nil
	case len(k.Secrets) > secretsMost:
		return wrong(field, fmt.Sprintf("use at most %d", secretsMost), "there are %d placeholders of secrets", len(k.Secrets))
	case s.Network != NetworkAllowlist && s.Network != NetworkPublic && len(k.ReadableSecrets()) < len(k.Secrets):
		return wrong(field, "allow the hosts of the secret, for example --allow api.github.com", "a secret is put into requests on their way out, and the network is %s", s.Network)
	}
	places := map[string]string{}
	for _, text := range k.Secrets {
		m, err := secrets.ParseMount(text)
		if err != nil {
			return wrong(field, "", "%v", err)
		}
		place := m.As + "=" + m.To
		if m.To == "" {
			place = m.String() // a program may find several
		}
		if before := places[place]; before != "" {
			return wrong(field, "give each a place of its own", "%s and %s have the same place", before, text)
		}
		places[place] = text
		if m.As == secrets.MountEnv && slices.ContainsFunc(s.Env, func(set string) bool { return strings.HasPrefix(set, m.To+"=") }) {
			return wrong(field, "set it by --env or by --secret", "the variable %s is set already, and %s would set it too", m.To, text)
		}
	}
	return nil
}
