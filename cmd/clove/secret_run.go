package main

import (
	"context"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel"
	"clove.run/clove/runtime"
	"clove.run/clove/secrets"
	"clove.run/clove/secrets/sealed"
)

// checkSecrets refuses a run in the foreground for its secrets before anything of it is stored, as cloved does for those that it starts.
// The caller is root.
func checkSecrets(ctx context.Context, d *client.Client, spec agent.Spec) error {
	if len(spec.Kernel.Secrets) == 0 {
		return nil
	}
	kept, err := client.Do(ctx, d, methods.SecretList, api.SecretListParams{})
	if err != nil {
		return err
	}
	var all []api.Secret
	for _, name := range secrets.Mounted(spec.Kernel.Secrets) {
		at := slices.IndexFunc(kept.Secrets, func(s api.Secret) bool { return s.Name == name })
		if at < 0 {
			return api.NoSecret(name)
		}
		if err := kept.Secrets[at].Usable(time.Now()); err != nil {
			return err
		}
		all = append(all, kept.Secrets[at])
	}
	return runtime.CheckSecrets(spec, agent.Owner{}, all)
}

// checkOwnSecrets is checkSecrets without cloved.
func checkOwnSecrets(own *kernel.Own, spec agent.Spec) error {
	all, err := own.CheckSecrets(spec)
	if err != nil {
		return err
	}
	return runtime.CheckSecrets(spec, agent.Owner{}, all)
}

// ownKeys decrypt values without cloved, which alone sets them.
type ownKeys struct{ *sealed.Keeper }

// CheckSSH refuses: no value is set here.
func (ownKeys) CheckSSH([]byte) error {
	return api.Failure(api.CodeUnenforceable, agent.StartCloved(), "cloved, which keeps secrets, does not run")
}
