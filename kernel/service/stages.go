package service

import (
	"slices"

	"clove.run/clove/api"
)

// stage is one step that a call passes before it is done.
type stage struct {
	name string
	pass func(e *Engine, c *Call) error
}

// stages are the steps in their order. The step approval is apart (approval.go): it may wait.
var stages = []stage{
	{StageGrant, (*Engine).covered},
	{StageTaints, untainted},
	{StageBudget, (*Engine).reserved},
}

// pass takes a call through the stages from one on. A refusal names its stage.
func (e *Engine) pass(c *Call, all []stage) error {
	for _, s := range all {
		if err := s.pass(e, c); err != nil {
			return of(s.name, err)
		}
	}
	return nil
}

// of notes in a refusal which stage it is of.
func of(name string, err error) error {
	fault, is := err.(*api.Error)
	if is && fault.Data.Step == "" {
		return fault.By(name, fault.Data.Rule)
	}
	return err
}

// covered requires a grant for everything that an agent's call names, or that people are asked about it, or have
// allowed it. The access rule of the method decides what a user may do about a run.
func (e *Engine) covered(c *Call) error {
	if !c.Agent || c.approved {
		return nil
	}
	if c.peopleOnly {
		if !c.asks {
			return api.Failure(api.CodeDenied, "", "people decide about %s, and the run asks none", c.Method)
		}
		c.uncovered = true
		return nil
	}
	for _, what := range c.declared.Covers {
		if e.config.Grants == nil {
			return notServed(StageGrant)
		}
		rule, err := e.config.Grants.Cover(c, what)
		if c.asks && err != nil && api.ErrorOf(err).Code == api.CodeDenied {
			c.uncovered = true
			continue
		}
		if err != nil {
			return err
		}
		if !slices.Contains(c.rules, rule) {
			c.rules = append(c.rules, rule)
		}
	}
	return nil
}

// untainted refuses an agent that carries a taint which the call must not meet.
func untainted(e *Engine, c *Call) error {
	return Untainted(e.config.Taints, c, c.declared.Avoids)
}

// Untainted is the stage taints for a part of a call, which decides by itself what the agent must not carry. taints may be nil:
// then a call that avoids some is refused.
func Untainted(taints Taints, c *Call, avoids []string) error {
	if !c.Agent || len(avoids) == 0 {
		return nil
	}
	if taints == nil {
		return notServed(StageTaints)
	}
	carried, err := taints.Carried(c)
	if err != nil {
		return err
	}
	for _, taint := range carried {
		if slices.Contains(avoids, taint) {
			return api.Failure(api.CodeDenied, "", "the agent carries the taint %.64q", taint).By(StageTaints, taint)
		}
	}
	return nil
}

// reserved sets the upper bound of what the call costs aside.
func (e *Engine) reserved(c *Call) error {
	if len(c.declared.Costs) == 0 {
		return nil
	}
	if e.config.Ledger == nil {
		return notServed(StageBudget)
	}
	out, err := e.config.Ledger.Reserve(c, c.declared.Costs)
	c.out.Add(out)
	return err
}

// finish settles what a call cost, and counts one use of each grant that covered it.
func (e *Engine) finish(c *Call) error {
	for _, rule := range c.rules {
		if err := e.config.Grants.Use(c, rule); err != nil {
			return err
		}
	}
	if len(c.declared.Costs) == 0 {
		return nil
	}
	used := c.out.Used
	if used == nil {
		used = c.declared.Costs
	}
	out, err := e.config.Ledger.Settle(c, used)
	c.out.Add(out)
	return err
}

// notServed refuses what a stage would have to decide that nothing serves.
func notServed(name string) error {
	return api.Failure(api.CodeUnenforceable, "", "nothing here decides the stage %s", name).By(name, "")
}
