package kernel

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/secrets"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Secrets without cloved are root's, and in cloved's file. It is opened for each step, and never for longer: of two processes that use
// it one waits, and while cloved has it nothing is done.

// kept runs do on the file of root's secrets, whose changes stay unless it fails.
func (o *Own) kept(do func(tx *store.KernelTx, now time.Time) error) error {
	if _, err := os.Stat(o.Kept); errors.Is(err, fs.ErrNotExist) {
		return api.Failure(api.CodeNotFound, agent.StartCloved()+"; clove secret set keeps one", "no secret was set on this host")
	}
	file, err := store.OpenKernel(o.Kept, openTime, Tables()...)
	if agent.KindOf(err) == agent.KindBusy {
		return api.Failure(api.CodeBusy, "start the run again", "another process has the secrets; if it is cloved, that has started after the run")
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Update(func(tx *store.KernelTx) error { return do(tx, time.Now()) }), file.Close())
}

// CheckSecrets returns the secrets that a run of root's would be started with. One that cannot be used is an error.
func (o *Own) CheckSecrets(spec agent.Spec) (all []api.Secret, err error) {
	err = o.kept(func(tx *store.KernelTx, now time.Time) (err error) {
		for _, plain := range []bool{false, true} {
			some, _, serr := secrets.Secrets{Keys: o.Config.Secrets}.Open(tx, agent.Run{Spec: spec}, plain, now)
			all, err = append(all, some...), cmp.Or(err, serr)
		}
		return err
	})
	return all, err
}

// Secrets is runtime.Secrets'.
func (o *Own) Secrets(_ context.Context, _ agent.ID, plain bool, pipe *os.File) (all []api.Secret, err error) {
	var values map[string]string
	err = o.kept(func(tx *store.KernelTx, now time.Time) (err error) {
		all, values, err = o.attached().secrets.Open(tx, o.run, plain, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, WriteValues(pipe, values)
}

// UseSecret is runtime.Secrets': the run's grants are in its own file.
func (o *Own) UseSecret(_ context.Context, p api.SecretUseParams) (result api.SecretUseResult, err error) {
	k := o.attached()
	err = o.kept(func(tx *store.KernelTx, now time.Time) (err error) {
		result, err = k.secrets.UseKept(tx, now, o.run, p, func(decide func(*service.Call) (service.Outcome, error)) error {
			return k.engine.For(service.Caller{Run: o.run}, methods.SecretUse.Name, p.Secret, decide)
		})
		return err
	})
	return result, err
}

// ModelKey is Secrets.ModelKey.
func (o *Own) ModelKey(name string) (one api.Secret, value string, err error) {
	err = o.kept(func(tx *store.KernelTx, now time.Time) (err error) {
		one, value, err = o.attached().secrets.Key(tx, name, now)
		return err
	})
	return one, value, err
}

// UseModelKey is Secrets.UseModelKey.
func (o *Own) UseModelKey(run agent.Run, p api.SecretUseParams) error {
	return o.kept(func(tx *store.KernelTx, now time.Time) error {
		_, err := o.attached().secrets.UseKey(&service.Call{Caller: service.Caller{Run: run, UID: run.Owner.UID}, Tx: tx, Now: now}, p)
		return err
	})
}
