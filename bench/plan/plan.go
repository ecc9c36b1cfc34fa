package plan

import (
	"fmt"
	"path"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/suite"
)

// Attempt is one agent that tries one task with one seed.
type Attempt struct {
	Task  suite.Task
	Agent suite.Agent
	Seed  int64
}

// ID names the attempt and its folder. Names have no dot, so no two attempts share one.
func (a Attempt) ID() string { return fmt.Sprintf("%s.%s.%d", a.Task.Name, a.Agent.Name, a.Seed) }

// All lists the attempts by seed, then task, then agent: agents that are compared run next to
// each other, and a change of the machine over hours meets them alike.
func All(s *suite.Suite) []Attempt {
	var all []Attempt
	for _, seed := range s.Seeds {
		for _, task := range s.Tasks {
			for _, who := range s.Agents {
				all = append(all, Attempt{task, who, seed})
			}
		}
	}
	return all
}

// Filter keeps the attempts that match one of the patterns, TASK[.AGENT[.SEED]] with * and ?
// as in a shell. Without a pattern it keeps all.
func Filter(all []Attempt, patterns []string) ([]Attempt, error) {
	if len(patterns) == 0 {
		return all, nil
	}
	var kept []Attempt
	for _, a := range all {
		for _, pattern := range patterns {
			matches, err := match(pattern, a)
			if err != nil {
				return nil, &agent.Error{Kind: agent.KindInvalid, Step: "--filter", Message: fmt.Sprintf("%.80q is no pattern", pattern),
					Hint: "write TASK.AGENT.SEED with * for anything"}
			}
			if matches {
				kept = append(kept, a)
				break
			}
		}
	}
	if len(kept) == 0 {
		return nil, &agent.Error{Kind: agent.KindNotFound, Step: "--filter", Message: "no attempt matches " + strings.Join(patterns, " or "),
			Hint: "write TASK.AGENT.SEED with * for anything; clove bench plan lists the attempts"}
	}
	return kept, nil
}

func match(pattern string, a Attempt) (bool, error) {
	parts := strings.Split(pattern, ".")
	if len(parts) > 3 {
		return false, path.ErrBadPattern
	}
	for i, part := range parts {
		matches, err := path.Match(part, strings.Split(a.ID(), ".")[i])
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}

// Left returns the attempts without a valid result, in their order. One that failed for the
// infrastructure has none.
func Left(all []Attempt, results []bench.Result) []Attempt {
	done := map[string]bool{}
	for _, r := range results {
		done[r.Attempt] = r.Outcome != bench.Infrastructure
	}
	var left []Attempt
	for _, a := range all {
		if !done[a.ID()] {
			left = append(left, a)
		}
	}
	return left
}
