package monitor

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

// Client is the monitors' side of container.Hooks, in clove-oci's commands.
type Client struct {
	// Rules are those of the bundle, when a container is created. All later calls
	// know them from the container's directory.
	Rules oci.Rules
	// Records is the directory that records go to, absolute, for oci.RecordsDir.
	Records string
	// Socket is that of the cloved that records are reported to, absolute; "": none.
	Socket string
}

// Created starts the monitor of a container whose process waits for its start. A
// container without a deadline and a record has none. After an error no monitor is
// left; one about an annotation is an *agent.Error, whose Step names it.
func (c Client) Created(made *container.Container, command []string) error {
	if !Needed(c.Rules) {
		return nil
	}
	kept, err := made.Kept()
	if err != nil {
		return err
	}
	o := order{Version: orderVersion, Phase: phaseCreated, ID: kept.ID, Pid: kept.Pid, PidStart: kept.StartTime,
		Cgroups: kept.Cgroups, Command: command, Limits: c.Rules.Limits}
	if c.Rules.Record != "" {
		if o.Source, o.Record, err = c.prepareRecord(owner{kept.ID, kept.Directory}); err != nil {
			return failed(oci.AnnotationRecord, err)
		}
		o.Socket = c.Socket
	}
	// The lock is taken before the order is on disk: a process that finds the order
	// and a free lock would start a second monitor.
	held, err := lock(kept.Directory)
	if err != nil || held == nil {
		return errors.Join(err, errors.New("cannot lock the container's directory"))
	}
	defer held.Close()
	if err := o.save(kept.Directory); err != nil {
		return err
	}
	// The error names an annotation that the author of the container wrote.
	key := oci.AnnotationTimeout
	if c.Rules.Limits.WallClock == 0 {
		key = oci.AnnotationRecord
	}
	return failed(key, spawn(kept.Directory, held))
}

// Needed reports whether the rules need a monitor.
func Needed(rules oci.Rules) bool { return rules.Limits.WallClock != 0 || rules.Record != "" }

// prepareRecord finds out now whether a record can be written at all: at the end it is too
// late to refuse.
func (c Client) prepareRecord(whose owner) (source, string, error) {
	from, err := findSource(sourcePidfd, sourceTaskstats)
	if errors.Is(err, errStatus) {
		return "", "", &agent.Error{Kind: agent.KindUnenforceable, Message: err.Error(), Hint: "omit it; the engine knows the exit status"}
	} else if err != nil {
		return "", "", err
	}
	path, err := recordPath(c.Records, c.Rules.Record, whose)
	return from, path, err
}

// failed names the annotation that cannot be enforced.
func failed(key string, err error) error {
	if err == nil {
		return nil
	}
	named := &agent.Error{Kind: agent.KindOf(err), Step: "annotation " + key, Message: err.Error(),
		Hint: "omit it, or run the agent with clove run"}
	var known *agent.Error
	if errors.As(err, &known) {
		named.Message, named.Hint = known.Message, known.Hint
	}
	return named
}

// Loaded starts the monitor again if it was killed before the container's record was
// written.
func (c Client) Loaded(found *container.Container) error {
	directory := found.Directory()
	// First without the lock: most containers have no monitor, and most monitors live.
	if o, has, err := readOrder(directory); err != nil || !has || o.Phase == phaseEnded {
		return err
	}
	held, err := lockAgain(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another call of clove-oci removes the container
	}
	if err != nil || held == nil {
		return err
	}
	defer held.Close()
	// Again, with the lock: it may have finished since, and the container may be gone.
	if o, has, err := readOrder(directory); err != nil || !has || o.Phase == phaseEnded {
		return err
	}
	return spawn(directory, held)
}

// startPatience bounds the wait for the monitor, which only writes one file before it
// answers.
const startPatience = 30 * time.Second

// Starting returns when the monitor has begun the deadline and written it to disk; the
// container's process executes next.
func (c Client) Starting(found *container.Container) error {
	_, has, err := readOrder(found.Directory())
	if err != nil {
		return err
	}
	if !has {
		return checkUnneeded(found)
	}
	err = ask(found.Directory(), verbStart, startPatience)
	if errors.Is(err, errNobody) {
		// It was dying when Loaded looked: a killed process keeps its lock for a moment.
		if err = c.Loaded(found); err == nil {
			err = ask(found.Directory(), verbStart, startPatience)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot enforce the container's rules: %w", err)
	}
	return nil
}

// checkUnneeded refuses a container that should have a monitor and has never had
// one: its create was killed between libcontainer's work and Created.
func checkUnneeded(found *container.Container) error {
	state, err := found.State()
	if err != nil {
		return err
	}
	rules, err := oci.For(state.Annotations, state.ID)
	if err != nil || !Needed(rules) {
		return err
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Message: "cannot enforce the container's rules: it was not created completely",
		Hint: "delete it, and create it again"}
}

// finishPatience bounds the wait of a removal. A record may still wait for the parent of
// the container's process to reap it, which the exit status depends on.
const finishPatience = 10 * time.Second

// Ended returns when the monitor of an ended container has written its record and
// exited, so that cgroup and directory may be removed. An error, after ten seconds at
// most, says what the record still waits for.
func (c Client) Ended(found *container.Container) error {
	directory := found.Directory()
	if _, has, err := readOrder(directory); err != nil || !has {
		return err
	}
	err := ask(directory, verbFinish, finishPatience)
	o, has, read := readOrder(directory)
	switch {
	// No error if the monitor ended by itself, now or long ago, or another call has
	// removed the container meanwhile.
	case err == nil, read == nil && (!has || o.Phase == phaseEnded), errors.Is(err, errNobody) && o.Phase == phaseCreated:
		return read
	}
	return fmt.Errorf("cannot finish the container's record: %w", err)
}
