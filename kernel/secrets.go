package kernel

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Secrets returns the secrets that a run was started with, and their values by their names, which the caller passes to the
// process that puts them into requests, and to no other. With plain they are those that the agent is to read.
func (k *Kernel) Secrets(run agent.Run, plain bool) (all []api.Secret, values map[string]string, err error) {
	err = k.engine.Read(func(tx *store.KernelTx) (err error) {
		all, values, err = k.secrets.Open(tx, run, plain, k.engine.Now())
		return err
	})
	return all, values, err
}
