package kernel

import (
	"encoding/json"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Secrets has the values of secrets, for parts of clove's that pass them on.
type Secrets struct{ k *Kernel }

// Of returns the secrets that a run was started with, and their values by their names, which the caller passes to the
// process that puts them into requests, and to no other. With plain they are those that the agent is to read.
func (s Secrets) Of(run agent.Run, plain bool) (all []api.Secret, values map[string]string, err error) {
	err = s.k.engine.Read(func(tx *store.KernelTx) (err error) {
		all, values, err = s.k.secrets.Open(tx, run, plain, s.k.engine.Now())
		return err
	})
	return all, values, err
}

// ModelKey returns a secret of root's that is the key of a provider of models, and its value, for the process that calls providers and
// for no other.
func (s Secrets) ModelKey(name string) (one api.Secret, value string, err error) {
	err = s.k.engine.Read(func(tx *store.KernelTx) (err error) {
		one, value, err = s.k.secrets.Key(tx, name, s.k.engine.Now())
		return err
	})
	return one, value, err
}

// UseModelKey decides and counts a call of a model by a run that is to carry such a key; without an id it is root's own.
func (s Secrets) UseModelKey(run agent.Run, use api.SecretUseParams) error {
	return s.k.engine.For(service.Caller{Run: run, UID: run.Owner.UID}, methods.SecretUse.Name, use.Secret, func(c *service.Call) (service.Outcome, error) {
		return s.k.secrets.UseKey(c, use)
	})
}

// valuesTime bounds the wait for a reader of values.
const valuesTime = 10 * time.Second

// WriteValues writes values of secrets into a pipe, in bounded time: a reader that does not read would hold the values here.
func WriteValues(pipe *os.File, values map[string]string) error {
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	defer clear(text)
	if err := pipe.SetWriteDeadline(time.Now().Add(valuesTime)); err != nil {
		return api.Failure(api.CodeRequest, "", "the descriptor is no pipe")
	}
	if _, err := pipe.Write(text); err != nil {
		return api.Failure(api.CodeRequest, "", "the values of secrets cannot be passed on")
	}
	return nil
}
