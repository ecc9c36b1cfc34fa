package people

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
)

// started is an agent that this server started.
type started struct {
	*held
	of string // the agent's name in the list
}

// maxAgents bounds those that live at once, and maxKept those that are remembered.
const (
	maxAgents = 8
	maxKept   = 64
)

type spawnArguments struct {
	Agent  string `json:"agent"`
	Prompt string `json:"prompt"`
}

// spawnAgent starts an agent, and does not wait for it.
func (s *Server) spawnAgent(ctx context.Context, a spawnArguments) (answer, error) {
	one, err := s.spawn(ctx, a.Agent, a.Prompt)
	if err != nil {
		return answer{}, err
	}
	return answer{text: one.spec.Name + " has started. ask_agent waits for what it answers, kill_agent ends it.\n"}, nil
}

func (s *Server) spawn(ctx context.Context, name, prompt string) (*started, error) {
	if !slices.ContainsFunc(s.Agents(), func(a Agent) bool { return a.Name == name }) {
		return nil, wrong("list_agents has those that can be started; the user adds one as ~/.config/clove/agents/NAME.yaml", "there is no agent %.64q", name)
	}
	spec, err := s.Agent(name, prompt)
	if err != nil {
		return nil, err
	}
	spec.Remove = spec.Remove || spec.Files.Workspace == ""
	s.mu.Lock()
	defer s.mu.Unlock() // while it starts, so that there are never too many
	live := 0
	for _, other := range s.agents {
		if !other.ended() {
			live++
		}
	}
	switch {
	case live == maxAgents:
		return nil, &agent.Error{Kind: agent.KindBusy, Message: fmt.Sprintf("%d agents are at work", live), Hint: "wait for one with ask_agent, or end one with kill_agent"}
	case len(s.agents) == maxKept:
		first := slices.IndexFunc(s.agents, func(one *started) bool { return one.ended() })
		if err := s.settle(ctx, s.agents[first].held); err != nil {
			return nil, err
		}
		s.agents = slices.Delete(s.agents, first, first+1)
	}
	h, err := s.hold(ctx, spec)
	if err != nil {
		return nil, err
	}
	one := &started{held: h, of: name}
	s.agents = append(s.agents, one)
	s.Report("the agent " + spec.Name + " has started")
	return one, nil
}

type noArguments struct{}

func (s *Server) listAgents(context.Context, noArguments) (answer, error) {
	var b strings.Builder
	b.WriteString("Agents that can be started:\n")
	all := s.Agents()
	for _, a := range all {
		fmt.Fprintf(&b, "%s: %s\n", a.Name, a.Description)
	}
	if len(all) == 0 {
		b.WriteString("none\n")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.agents) > 0 {
		b.WriteString("Agents that were started:\n")
	}
	for _, one := range s.agents {
		state := "at work"
		if one.ended() {
			state = s.ending(one.held)
		}
		fmt.Fprintf(&b, "%s (%s): %s\n", one.spec.Name, one.of, state)
	}
	return answer{text: b.String()}, nil
}

type askArguments struct {
	Agent   string  `json:"agent"`
	Prompt  string  `json:"prompt"`
	Timeout seconds `json:"timeout_seconds"`
}

// askAgent waits for what an agent answers: one that was started, or one that it starts.
func (s *Server) askAgent(ctx context.Context, a askArguments) (answer, error) {
	within, err := a.Timeout.duration()
	if err != nil {
		return answer{}, err
	}
	one := s.startedAs(a.Agent)
	switch {
	case one != nil && a.Prompt != "":
		return answer{}, wrong("omit the prompt to wait for its answer, or name the agent "+one.of+" to ask another one", "%s has its prompt already, and takes no other", a.Agent)
	case one == nil:
		if one, err = s.spawn(ctx, a.Agent, a.Prompt); err != nil {
			return answer{}, err
		}
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-one.done:
	case <-timer.C:
		return answer{text: fmt.Sprintf("%s is still at work after %s. ask_agent with agent %s, without a prompt, waits again.\n", one.spec.Name, within, one.spec.Name)}, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	return s.said(one), nil
}

// startedAs finds an agent by the name of its run.
func (s *Server) startedAs(name string) *started {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.agents, func(one *started) bool { return one.spec.Name == name })
	if at < 0 {
		return nil
	}
	return s.agents[at]
}

// said is the output of an agent that has ended.
func (s *Server) said(one *started) answer {
	ending := s.ending(one.held)
	one.mu.Lock()
	defer one.mu.Unlock()
	var a answer
	a.text, a.left = one.stdout.text()
	if one.record == nil || one.record.ExitCode != 0 {
		errors, left := one.stderr.text()
		a.failed = one.spec.Name + ": " + ending
		if errors != "" {
			a.text += "\n[stderr]\n" + errors
			a.left += left
		}
	}
	if one.spec.Files.Workspace != "" {
		a.text += "\n[The agent worked on a copy of " + one.spec.Files.Workspace + "; the user sees its changes with clove diff " + one.spec.Name + "]\n"
	}
	return a
}

type killArguments struct {
	Agent string `json:"agent"`
}

// killAgent ends an agent, also one that is in the middle of a start.
func (s *Server) killAgent(ctx context.Context, a killArguments) (answer, error) {
	one := s.startedAs(a.Agent)
	if one == nil {
		return answer{}, wrong("list_agents has those that were started here", "this server has started no agent %.64q", a.Agent)
	}
	if one.ended() {
		return answer{text: one.spec.Name + " has ended: " + s.ending(one.held) + "\n"}, nil
	}
	if err := s.settle(ctx, one.held); err != nil {
		return answer{}, err
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
	return answer{text: one.spec.Name + " was ended.\n"}, nil
}
