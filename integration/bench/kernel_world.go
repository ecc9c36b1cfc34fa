package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/store"
)

// The peers.
const (
	ledgerClove  = "clove"
	ledgerMany   = "clove, 10 000 agents"
	ledgerSQLite = "SQLite"
	ledgerRedis  = "Redis"
)

var ledgerKinds = []kind[*ledgers, *ledgerPeer]{
	{ledgerClove, "the agent's socket and cloved; also checks the caller, and writes a hash-chained log", func(w *ledgers) (*ledgerPeer, error) {
		return &ledgerPeer{ledgerClove, ledgerClove, w.inside}, nil
	}},
	{ledgerMany, "the same beside the accounts, grants and answers of 10 000 other agents", (*ledgers).openMany},
	{ledgerSQLite, "a file in a folder of the agent's (-v), WAL, synchronous=FULL, from Python; callers take turns with a lock", func(w *ledgers) (*ledgerPeer, error) {
		return w.proven(&ledgerPeer{ledgerSQLite, ledgerSQLite, w.inside})
	}},
	{ledgerRedis, "a server outside, its socket in a folder of the agent's (-v), appendfsync always; a script for each change", (*ledgers).openRedis},
}

// ledgerPeer is a ledger as seen by an agent in a sandbox.
type ledgerPeer struct {
	name   string
	ledger string
	client *remote
}

func (p *ledgerPeer) run(o ledgerOrder) (report, error) {
	o.Ledger = p.ledger
	said, err := p.client.run(o)
	if err != nil {
		err = fmt.Errorf("cannot measure %s: %w", p.name, err)
	}
	return said, err
}

// ledgers has a cloved and a sandbox for each of the first two peers.
type ledgers struct {
	site
	folder string // what the sandboxes share with the host
	few    *cloved
	inside *remote // the agent of few
}

// open starts everything.
func (w *ledgers) open(t *table) (peers []*ledgerPeer, err error) {
	// The agent's id is another one on the host.
	if err := errors.Join(os.Mkdir(w.folder, 0o777), os.Chmod(w.folder, 0o777)); err != nil {
		return nil, err
	}
	w.few = w.newCloved("few")
	if err := w.serve(w.few); err != nil {
		return nil, err
	}
	if w.inside, err = w.agentOf(w.few); err != nil {
		return nil, err
	}
	return openAll(w, t, ledgerKinds), nil
}

// agentOf starts a sandbox whose ledger is that of d, with this binary as its agent.
func (w *ledgers) agentOf(d *cloved) (*remote, error) { return w.agentNamed(d, "bench-ledger") }

func (w *ledgers) agentNamed(d *cloved, name string) (*remote, error) {
	const inside, folder = "/client", "/shared"
	return w.remote(w.clove, "--root", d.state, "--run-dir", d.run, "run", "--rm", "--name", name,
		"-v", w.self+":"+inside+":ro", "-v", w.folder+":"+folder, "--grant", checked, "--budget", spent+"=1000000g", "--at-end", "refuse",
		"--", inside, roleLedger, folder)
}

func (w *ledgers) openMany() (*ledgerPeer, error) {
	many := w.newCloved("others")
	if err := errors.Join(many.remember(records), many.share()); err != nil {
		return nil, err
	}
	if err := w.serve(many); err != nil {
		return nil, err
	}
	client, err := w.agentOf(many)
	return &ledgerPeer{ledgerMany, ledgerClove, client}, err
}

// share gives each run of the past an account, a grant and an answer.
func (d *cloved) share() error {
	s, err := store.Open(filepath.Join(d.state, "clove.db"), time.Minute)
	if err != nil {
		return err
	}
	runs, err := s.List()
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	file, err := store.OpenKernel(filepath.Join(d.state, "kernel.db"), time.Minute, kernel.Tables()...)
	if err != nil {
		return err
	}
	err = file.Update(func(tx *store.KernelTx) error {
		for i, run := range runs {
			if err := sharedOnce(tx, run.Spec.ID, uint32(1000+i%10)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, file.Close())
}

// sharedOnce writes the rows of one run that has called.
func sharedOnce(tx *store.KernelTx, run agent.ID, owner uint32) error {
	now := time.Now()
	account := &budget.Account{Key: budget.RunKey(owner, run)}
	_, err := account.Set(budget.Limit{Dimension: spent, Granted: 1000}, owner, now)
	if err != nil {
		return err
	}
	scope, err := grant.Parse(checked)
	if err != nil {
		return err
	}
	given, err := grant.New(grant.Request{ID: string(agent.NewID()), Scope: scope, Holder: string(run), Giver: "uid:0"}, now)
	if err != nil {
		return err
	}
	return errors.Join(store.Accounts.Put(tx, account), store.Grants.Put(tx, &given), store.Answers.Put(tx, run, "first", []byte(`{"reservation":"0000000000000000"}`)))
}

// proven has a peer work once, so that one that cannot is left out.
func (w *ledgers) proven(p *ledgerPeer) (*ledgerPeer, error) {
	_, err := p.run(ledgerOrder{Callers: 1, Turns: 2})
	return p, err
}

func (w *ledgers) openRedis() (*ledgerPeer, error) {
	if err := w.serveRedis(w.folder, filepath.Join(w.scratch, "redis")); err != nil {
		return nil, err
	}
	return w.proven(&ledgerPeer{ledgerRedis, ledgerRedis, w.inside})
}

// serveRedis starts a server that this benchmark alone uses, with its socket in a folder.
func (s *site) serveRedis(folder, data string) error {
	socket := filepath.Join(folder, redisSocket)
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if _, err := s.start(exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--unixsocketperm", "777", "--dir", data,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "")); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return nil
		} else if time.Since(began) > startPatience {
			return err
		}
	}
}
