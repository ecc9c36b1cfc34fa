package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
)

// Flags of clove audit that no other command has.
const (
	flagOwner      = "owner"
	flagKind       = "kind"
	flagVerdict    = "verdict"
	flagUntil      = "until"
	flagText       = "text"
	flagKey        = "key"
	flagCheckpoint = "checkpoint"
	flagFile       = "file"
	flagProof      = "proof"
)

// choosing are the flags of the verbs that print records.
var choosing = []string{flagOwner, flagNamespace, flagRun, flagKind, flagVerdict, flagSince, flagUntil, flagText, flagAfter, flagLast, flagJSON}

// auditVerbs are those of clove audit.
type auditVerbs program

func auditCommand() command {
	return command{
		task: "decide", usage: "show and verify the log of what was decided",
		text: "clove audit tail|query|verify [flags]\nclove audit export FILE\nclove audit prove NUMBER",
		verbs: []verb{
			{line: "clove audit tail", act: audited(auditVerbs.tail), also: append([]string{flagFollow}, choosing...)},
			{line: "clove audit query", act: audited(auditVerbs.query), also: choosing},
			{line: "clove audit verify", act: audited(auditVerbs.verify), also: []string{flagFile, flagKey, flagCheckpoint, flagProof, flagJSON}},
			{line: "clove audit export FILE", act: audited(auditVerbs.export)},
			{line: "clove audit prove NUMBER", act: audited(auditVerbs.prove)},
		},
		description: "tail shows the last records, query all that the flags choose. verify names the first record that is not as it was\n" +
			"written, also in a file of export's. export writes the records to FILE and a signed checkpoint to FILE.checkpoint:\n" +
			"keep that on another machine. prove writes a proof that a record is in the log, for verify --proof. For root; members of\n" +
			"cloved's group may use tail and query, and see what is about their own runs.",
		flags: []cli.Flag{
			&cli.BoolFlag{Name: flagFollow, Aliases: []string{"f"}, Usage: "tail: wait for more", DisableDefaultText: true},
			&cli.StringFlag{Name: flagOwner, Usage: "only what is about the runs of this user ID"},
			&cli.StringFlag{Name: flagNamespace, Usage: "only of this namespace and those below it"},
			&cli.StringFlag{Name: flagRun, Usage: "only of the run with this ID"},
			&cli.StringFlag{Name: flagKind, Usage: "only of this kind, such as decision, start or admin"},
			&cli.StringFlag{Name: flagVerdict, Usage: "only with this verdict, such as allow or deny"},
			&cli.StringFlag{Name: flagSince, Usage: "only what is newer: 10m, or 2026-01-02T15:04:05Z"},
			&cli.StringFlag{Name: flagUntil, Usage: "only what is older, written like --since"},
			&cli.StringFlag{Name: flagText, Usage: "only records that contain this text"},
			&cli.StringFlag{Name: flagAfter, Usage: "only behind the record with this number"},
			&cli.StringFlag{Name: flagLast, Usage: "only the last so many", DefaultText: "tail: 20; query: all"},
			&cli.StringFlag{Name: flagFile, Usage: "verify: a file that export wrote, instead of the log"},
			&cli.StringFlag{Name: flagKey, Usage: "verify: a file with public keys, instead of this host's"},
			&cli.StringFlag{Name: flagCheckpoint, Usage: "verify: a checkpoint that the log must agree with"},
			&cli.StringFlag{Name: flagProof, Usage: "verify: a proof that prove wrote, instead of the log"},
			jsonFlag("write each record, or the report, as a JSON object"),
		},
	}
}

func audited(do func(auditVerbs, *cli.Context) error) by {
	return func(p program, c *cli.Context) error { return auditError(c, do(auditVerbs(p), c)) }
}

// auditError explains the errors that users other than root get, and a log that is not there.
func auditError(c *cli.Context, err error) error {
	var known *agent.Error
	switch {
	case errors.As(err, &known): // also of cloved, which may be out of reach
	case errors.Is(err, fs.ErrPermission):
		return &agent.Error{Kind: agent.KindPrivilege, Step: "audit", Message: "only root reads the audit log", Hint: "sudo clove audit " + printable(strings.Join(c.Args().Slice(), " ")), Err: err}
	case errors.Is(err, fs.ErrNotExist):
		return &agent.Error{Kind: agent.KindNotFound, Step: "audit", Message: "there is no such log or file", Hint: "--root names the directory of the installation", Err: err}
	}
	return err
}

func auditDir(c *cli.Context) string { return audit.Dir(c.String(flagRoot)) }

// auditKeys are this host's, which must exist: reading makes none.
func auditKeys(c *cli.Context) (*audit.Keys, error) {
	dir := audit.KeyDir(c.String(flagRoot))
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	return audit.OpenKeys(dir)
}

func (p auditVerbs) verify(c *cli.Context) error {
	keys, err := publicKeys(c)
	if err != nil {
		return err
	}
	if c.IsSet(flagProof) {
		return p.verifyProof(c, keys)
	}
	var exported []byte
	if c.IsSet(flagCheckpoint) {
		if exported, err = os.ReadFile(c.String(flagCheckpoint)); err != nil {
			return err
		}
	}
	path := auditDir(c)
	if c.IsSet(flagFile) {
		path = c.String(flagFile)
	}
	report, err := audit.Verify(path, keys, exported)
	if err != nil {
		return err
	}
	if err := printAuditReport(p.screen, c.Bool(flagJSON), report); err != nil {
		return err
	}
	if report.Problem != nil {
		return exitStatus(exitFailed)
	}
	return nil
}

// publicKeys are those that may have signed: of the file that --key names, else the host's.
func publicKeys(c *cli.Context) ([]string, error) {
	if c.IsSet(flagKey) {
		text, err := os.ReadFile(c.String(flagKey))
		return strings.Fields(string(text)), err
	}
	keys, err := auditKeys(c)
	if errors.Is(err, fs.ErrNotExist) && unwritten(auditDir(c)) {
		return nil, nil // no cloved has been here: there are only logs of runs of their own, which are not signed
	}
	if err != nil {
		return nil, err
	}
	return keys.Public()
}

// unwritten reports whether the host's log was never written to.
func unwritten(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "head"))
	return errors.Is(err, fs.ErrNotExist)
}

func printAuditReport(s *screen, asJSON bool, report audit.Report) error {
	if asJSON {
		return s.printJSON(report)
	}
	line := fmt.Sprintf("%d records are as they were written, and agree with %d checkpoints; %d logs of runs of their own too", report.Records-report.Removed, report.Checkpoints, report.Runs)
	if report.Removed > 0 {
		line += fmt.Sprintf("; records 1 to %d were removed by the configuration's bounds, and the rest follows them", report.Removed)
	}
	if behind := report.Records - report.Covered; report.Covered > 0 && behind > 0 {
		line += fmt.Sprintf("; the last %d are behind the newest checkpoint", behind)
	}
	if report.Problem != nil {
		line = printable(report.Problem.Error())
	}
	_, err := fmt.Fprintln(s.out, line)
	return err
}

func (p auditVerbs) verifyProof(c *cli.Context, keys []string) error {
	text, err := os.ReadFile(c.String(flagProof))
	if err != nil {
		return err
	}
	e, err := audit.ReadProof(text, keys)
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "audit", Message: "the proof is not good", Err: err}
	}
	return auditPrinter(p.screen, c)(e)
}

func (p auditVerbs) export(c *cli.Context) error {
	keys, err := auditKeys(c)
	if err != nil {
		return err
	}
	to, err := filepath.Abs(c.Args().Get(1))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	exported, err := audit.Export(auditDir(c), keys, file)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.WriteFile(to+".checkpoint", exported.Checkpoint, 0o600)
	}
	if err == nil && exported.Begin != nil {
		err = os.WriteFile(to+".begin", exported.Begin, 0o600)
	}
	if err != nil {
		return errors.Join(err, os.Remove(to))
	}
	_, err = fmt.Fprintf(p.out, "%d records in %s; keep %s.checkpoint on another machine\n", exported.Last-exported.First+1, printable(to), printable(to))
	return err
}

func (p auditVerbs) prove(c *cli.Context) error {
	number, err := strconv.ParseUint(c.Args().Get(1), 10, 63)
	if err != nil || number == 0 {
		return invalid("", "clove audit tail shows the numbers", "%q is not the number of a record", c.Args().Get(1))
	}
	keys, err := auditKeys(c)
	if err != nil {
		return err
	}
	proof, err := audit.Prove(auditDir(c), keys, number)
	if err != nil {
		return err
	}
	return p.printJSON(proof)
}
