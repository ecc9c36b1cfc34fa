package main

import (
	"github.com/urfave/cli/v2"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Flags of clove jobs and clove queue that no other command has.
const (
	flagJobDelay    = "delay"
	flagJobDeadline = "deadline"
	flagJobState    = "state"
	flagAttempts    = "attempts"
	flagManifest    = "manifest"
	flagConcurrency = "concurrency"
	flagBackoff     = "backoff"
	flagLease       = "lease"
)

func jobsCommand() command {
	return command{
		task: "share", usage: "add jobs to queues, look at them, retry and cancel them",
		verbs: []verb{
			{line: "clove jobs add [--owner UID] [--namespace NAMESPACE] [--priority N] [--delay TIME] [--deadline TIME] [--attempts N] [--file FILE] [--json] QUEUE [BODY]",
				act: fromFile(ask(methods.JobsAdd), "clove jobs add QUEUE BODY, or --file FILE in place of BODY", func(p *api.JobsAddParams) body { return body{p.Owner, &p.Body, &p.Blob} }).shows(says(func(_ *line, added api.JobResult) string { return added.Job.ID }))},
			{line: "clove jobs list [--owner UID] [--namespace NAMESPACE] [--state STATE] [--json] [QUEUE]", act: list(methods.JobsList).columns("JOB", "QUEUE", "STATE", "ATTEMPTS", "ADDED", "FROM", "WHY", "BLOB", "BODY")},
			{line: "clove jobs show JOB", act: ask(methods.JobsShow)},
			{line: "clove jobs blob [--owner UID] SHA256", act: blobCall()},
			{line: "clove jobs retry JOB", act: ask(methods.JobsRetry).shows(says(func(l *line, _ api.JobResult) string { return l.args[0] }))},
			{line: "clove jobs cancel JOB", act: ask(methods.JobsCancel).shows(says(func(l *line, _ api.JobResult) string { return l.args[0] }))},
		},
		description: "BODY is JSON, or a text. FILE is one that is JSON of at most 48 KiB, or becomes a blob, which has up to 64 MiB: blob writes\n" +
			"one to the output, by the SHA-256 that show has. A run of the queue's manifest, or an agent that claims it, works on a job; one that fails is tried\n" +
			"again, and in the end dead. list shows those to be done, the dead ones and the last ones that are done; STATE is delayed,\n" +
			"ready, held, dead or done. show prints one as JSON. retry makes a dead job ready again, and a delayed one at once. cancel\n" +
			"removes a job, and ends a run that was started for it. Root sees the jobs of all users. clove queue has the queues.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagOwner, Usage: "the jobs of this user ID; for root"},
			&cli.StringFlag{Name: flagNamespace, Usage: "the jobs of this namespace; without it add means none"},
			&cli.StringFlag{Name: flagFile, Usage: "add: the body is this file"},
			value("", flagMailPriority, "", "add: 0 to 9; higher ones are taken first", "0"),
			&cli.StringFlag{Name: flagJobDelay, Usage: "add: it is not taken before, such as 10m"},
			&cli.StringFlag{Name: flagJobDeadline, Usage: "add: then it is dead, such as 1h"},
			&cli.StringFlag{Name: flagAttempts, Usage: "add: how often it is tried; without it as often as the queue says"},
			&cli.StringFlag{Name: flagJobState, Usage: "list: those in this state"},
			jsonFlag("list: write a JSON array; add: an object"),
		},
	}
}

func queueCommand() command {
	return command{
		task: "share", usage: "make, list and remove queues of jobs",
		verbs: []verb{
			{line: "clove queue add [--owner UID] [--namespace NAMESPACE] [--manifest MANIFEST] [--concurrency N] [--attempts N] [--backoff TIME] [--lease TIME] [--json] NAME",
				act: ask(methods.QueueAdd).shows(says(func(l *line, _ api.QueueResult) string { return l.args[0] }))},
			{line: "clove queue ls [--owner UID] [--namespace NAMESPACE] [--json]",
				act: list(methods.QueueList).columns("QUEUE", "NAMESPACE", "MANIFEST", "CONCURRENCY", "ATTEMPTS", "LEASE", "WAITING", "HELD", "DEAD", "DONE", "WHY")},
			{line: "clove queue rm [--owner UID] [--namespace NAMESPACE] NAME", act: ask(methods.QueueRemove).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
		},
		description: "Agents with a grant send:job/NAME add jobs to a queue, and those with name:job/NAME claim them. With --manifest clove starts\n" +
			"a run of that manifest (clove manifest add) for each job, which is its standard input; the manifest is the one of now, whatever\n" +
			"is added under its name later. add again replaces the settings. rm removes a queue without jobs.",
		flags: []cli.Flag{
			&cli.StringFlag{Name: flagOwner, Usage: "the queues of this user ID; for root"},
			&cli.StringFlag{Name: flagNamespace, Usage: "the queues of this namespace; without it add means that of the manifest, and rm none"},
			&cli.StringFlag{Name: flagManifest, Usage: "add: what is started for each job"},
			value("", flagConcurrency, "", "add: how many jobs are held at once; with a manifest at most 64", "1 with a manifest, else no limit"),
			value("", flagAttempts, "", "add: how often a job is tried", "3"),
			value("", flagBackoff, "", "add: the pause before the second attempt, which doubles", "1s"),
			value("", flagLease, "", "add: how long an agent holds a job that it claims and does not renew", "1m"),
			jsonFlag("ls: write a JSON array; add: an object"),
		},
	}
}
