package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/cmd/clove/verbs"
	"clove.run/clove/policies"
	"clove.run/clove/policies/advice"
)

// whyRun is all that clove why writes about a run.
type whyRun struct {
	Run      agent.ID        `json:"run"`
	Name     string          `json:"name"`
	State    agent.State     `json:"state"`
	Waits    string          `json:"waits,omitempty"`  // for what: its start, or people
	Status   agent.Status    `json:"status,omitempty"` // absent while it lives
	ExitCode int             `json:"exit_code"`
	Lines    []string        `json:"lines"`           // how it ended, for people
	Facts    []fact          `json:"facts"`           // its terms, its log and the next step
	Limit    *agent.LimitHit `json:"limit,omitempty"` // that ended it
	Raise    *advice.Advice  `json:"raise,omitempty"` // what gives more of it
	Denials  []whyDenial     `json:"denials"`
	Shadow   *whyShadow      `json:"shadow,omitempty"` // what its shadow policy would have refused
}

// whyDenial is one denial with what would have let it pass.
type whyDenial struct {
	agent.Denial
	Advice advice.Advice `json:"advice"`
}

// lookedUp finds the run that the only argument names, if it exists. An argument with a colon is never a run here, and
// neither is one beside rules. One with a dot is only where it is an agent of a team, whose run has that name; clove why
// run NAME always is.
func lookedUp(p program, c *cli.Context) (run agent.Run, found bool, err error) {
	reference := c.Args().First()
	if c.NArg() == 2 && reference == runName {
		if flag := givenRule(c); flag != "" {
			return run, false, invalid(flag, "omit it: a run has its own rules", "clove why run does not take it")
		}
		run, err = p.stored(c, c.Args().Get(1))
		return run, err == nil, err
	}
	if c.NArg() != 1 || strings.ContainsAny(reference, ":[") || givenRule(c) != "" || !mayHaveRuns(p.access, c) {
		return run, false, nil
	}
	run, err = p.stored(c, reference)
	switch kind := agent.KindOf(err); {
	case strings.Contains(reference, "."):
		return run, err == nil && ofTeam(run, run.Spec.Labels[policies.LabelTeam]), nil
	case err == nil:
		return run, true, nil
	case kind == agent.KindNotFound:
		text := fmt.Sprintf("there is no run %q, so it is taken as a host", reference)
		if near := agent.FailureOf(p.nearRun(c, reference, err)); near.Hint != agent.FailureOf(err).Hint {
			text += "; " + near.Hint
		}
		p.say("clove", cyan, text)
	case kind == agent.KindInvalid: // the beginning of several ids
		return run, false, err
	}
	return run, false, nil // a user that sees no runs asks about hosts
}

// givenRule is the first flag that decides over a connection.
func givenRule(c *cli.Context) string {
	for _, flag := range whyFlags {
		if c.IsSet(flag) {
			return flag
		}
	}
	return ""
}

// mayHaveRuns spares a host without runs the store that opening one would make.
func mayHaveRuns(a *access, c *cli.Context) bool {
	if d, err := a.cloved(c); err == nil {
		d.Close()
		return true
	}
	paths, err := directories(c)
	if err != nil {
		return false
	}
	_, err = os.Stat(paths.State)
	return !errors.Is(err, fs.ErrNotExist)
}

// explainRun prints what is to be said about a run. There is no question with a yes or no,
// so the exit status is 0.
func explainRun(s *screen, run agent.Run, waits string, log []string) error {
	of := whyOf(run)
	if of.Waits = waits; waits != "" {
		of.Lines = append(of.Lines, "it waits: "+waits)
	}
	of.Facts = story(run, log)
	if s.json {
		return s.printJSON(of)
	}
	lines := of.Lines
	if of.Raise != nil {
		lines = append(lines, fmt.Sprintf("  flag: %s; policy: %s", of.Raise.Flag, of.Raise.Policy))
	}
	for _, d := range of.Denials {
		lines = append(lines, denialLines(d)...)
	}
	if of.Shadow != nil {
		lines = append(lines, of.Shadow.lines()...)
	}
	for _, f := range of.Facts {
		lines = append(lines, f.Name+": "+f.Value)
	}
	return s.printLines(verbs.Items(lines))
}

// waits is what a live run waits for; empty: nothing, or no cloved says it.
func (p program) waits(c *cli.Context, run agent.Run) string {
	if run.Record != nil {
		return ""
	}
	d, err := p.cloved(c)
	if err != nil {
		return ""
	}
	defer d.Close()
	found, err := client.Do(c.Context, d, methods.RunGet, api.RunParams{Run: string(run.Spec.ID)})
	if err != nil {
		return ""
	}
	return found.Reason
}

// whyOf collects what a run's record says.
func whyOf(run agent.Run) whyRun {
	of := whyRun{Run: run.Spec.ID, Name: run.Spec.Name, State: run.State, Lines: []string{}, Denials: []whyDenial{}}
	record := run.Record
	if record == nil {
		of.Lines = append(of.Lines, fmt.Sprintf("%s is %s: how it ends, and what was refused, is known at its end", shown(run.Name()), stateName(run)))
		return of
	}
	of.Status, of.ExitCode, of.Limit, of.Shadow = record.Status, record.ExitCode, record.Limit, shadowOf(run)
	if of.Limit != nil && record.EndedWith() == "" {
		if a := advice.OfLimit(*of.Limit, record.Status); a.Flag != "" {
			of.Raise = &a
		}
	}
	for _, d := range record.Denials {
		of.Denials = append(of.Denials, whyDenial{d, advice.Of(run.Spec, d)})
	}
	of.Lines = append(of.Lines, shown(run.Name())+" "+howEnded(run))
	if text := askedText(record.Asked); text != "" {
		of.Lines = append(of.Lines, "it "+text)
	}
	more := ending(*record, run.Spec.Limits)
	if record.Status == agent.StatusKilled {
		more = more[1:] // howEnded says more
	}
	of.Lines = append(of.Lines, more...)
	if hint := hintOf(run); hint != "" {
		of.Lines = append(of.Lines, "hint: "+hint)
	}
	if len(record.Unenforced) > 0 {
		of.Lines = append(of.Lines, "not enforced, as --allow-unenforced let it: "+strings.Join(record.Unenforced, ", "))
	}
	if len(record.ReadableSecrets) > 0 {
		of.Lines = append(of.Lines, "its agent could read the secrets "+strings.Join(record.ReadableSecrets, ", ")+": "+"rotate those that it must not keep, with clove secret rotate")
	}
	if run.Spec.Kernel.HasSocket() {
		of.Lines = append(of.Lines, "calls on its own socket that were refused are in the log: clove audit query")
	}
	if len(of.Denials) == 0 && len(more) == 0 && record.Error == nil && record.Status != agent.StatusKilled {
		of.Lines = append(of.Lines, "nothing was refused, and it reached no limit")
	}
	return of
}

// hintOf is what to do about the end of a run; empty: the record has no error, or it says enough.
func hintOf(run agent.Run) string {
	failure := run.Record.Error
	switch {
	case failure == nil:
		return ""
	case failure.Hint == "" && failure.Step == agent.StepParent:
		return "clove why " + parentName(run) + " says how that ended; children of a run with orphans: keep go on without it"
	}
	return failure.Hint
}

// parentName is the run that started one, as the caller writes it.
func parentName(run agent.Run) string {
	return shown(agent.RunName{UID: run.Owner.UID, Name: run.ParentName()})
}

// howEnded is the end of a run in one sentence, behind its name. The lines of ending
// about limits are not repeated.
func howEnded(run agent.Run) string {
	record, by := run.Record, ""
	if stopped := run.Stopped(); stopped != nil {
		by = fmt.Sprintf("was stopped by %s at %s, and ", stopped.By, stopped.Time.Local().Format(time.DateTime))
	}
	text := by + endOf(*record, by != "")
	if n := run.Queue.Restarts; run.Phase() == agent.PhaseGivenUp {
		text += fmt.Sprintf(", and its restart policy gave up after restart %d: clove restart begins again", n)
	}
	return text
}

// endOf is how a start ended, whether a user asked for it or not.
func endOf(record agent.Record, asked bool) string {
	after := ""
	if record.WallMS > 0 {
		after = " after " + clock(record.WallMS)
	}
	signal := "a signal"
	if record.Signal != nil {
		signal = *record.Signal
	}
	with := record.EndedWith()
	switch record.Status {
	case agent.StatusExited:
		return fmt.Sprintf("ended by itself%s, with exit status %d", after, record.ExitCode)
	case agent.StatusSignaled:
		if asked {
			return "ended by " + signal + after
		}
		return "was ended by " + signal + after + ", which clove did not send for a limit"
	case agent.StatusStartFailed:
		return "could not be started: " + failureText(record.Error)
	case agent.StatusKilled:
		switch {
		case with != "":
			return "was ended" + after + ": " + with
		case record.Lost():
			return "was ended" + after + ": " + record.Error.Message
		case asked:
			return "was killed" + after + ", at once or at the end of its grace"
		}
		return "was killed" + after + ", because clove run was ended or interrupted"
	case agent.StatusTimeout:
		switch {
		case record.NotStarted():
			return "was not started: " + with
		case with != "":
			return "was ended" + after + ": " + with
		}
	case agent.StatusPolicyKill, agent.StatusIdle:
		if record.Error != nil {
			return "was ended" + after + ": " + failureText(record.Error)
		}
	}
	return fmt.Sprintf("was ended%s (%s), and clove run exits with %d", after, record.Status, record.ExitCode)
}

func failureText(f *agent.Failure) string {
	if f == nil {
		return "the record does not say why"
	}
	text := f.Message
	if f.Step != "" {
		text = f.Step + ": " + text
	}
	return text
}

// denialLines are a denial, and below it what would have let it pass.
func denialLines(d whyDenial) []string {
	text := "refused: " + d.Kind + " " + d.Target
	if d.Rule != "" {
		text += ", by " + d.Rule
	}
	if d.Count > 1 {
		text += fmt.Sprintf(" (%d times)", d.Count)
	}
	lines := []string{text}
	for _, row := range [][2]string{{"flag", d.Advice.Flag}, {"policy", d.Advice.Policy}, {"note", d.Advice.Note}, {"risk", d.Advice.Risk}} {
		if row[1] != "" {
			lines = append(lines, "  "+row[0]+": "+row[1])
		}
	}
	return lines
}
