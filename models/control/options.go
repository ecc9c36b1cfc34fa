package control

import (
	"log/slog"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
)

// Ledger has the grants and budgets of runs. *ledger.Ledger is one.
type Ledger interface {
	Allowed(run agent.Run, what string) (bool, error)
	Left(run agent.Run, c *ledger.Ceiling) (budget.Left, error)
	// Changed returns a channel that is closed with the next change of any account.
	Changed() <-chan struct{}
	Reserve(run agent.Run, s ledger.Spending) (reservation string, err error)
	Renew(run agent.Run, n ledger.Renewal) error
	Settle(run agent.Run, s ledger.Settlement) error
}

// Options are what a Control works with.
type Options struct {
	Ledger Ledger
	// Config is the configuration that holds now.
	Config func() *config.Config
	// Programs returns the directory of clove-models and clove-upstream.
	Programs func() (string, error)
	// Secret returns a provider's key by its name.
	Secret func(name string) (string, error)
	// Secrets keeps the keys that are secrets; nil: there are none.
	Secrets Secrets
	// Called is told of each call that has ended, and must not block; nil: nobody asks.
	Called func(run agent.Run, c models.Call)
	// Journals is a directory for what makes calls outlast this process; empty: they end with it.
	Journals string
	// Run returns a run by its id, also one that has ended, for calls that Find finds.
	Run func(agent.ID) (agent.Run, error)
	// Contents opens the log of a run that asks for one (Spec.Kernel.ModelLog).
	Contents func(run agent.ID) (Contents, error)
	Log      *slog.Logger
}
