package main

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/client"
	"clove.run/clove/kernel/grant"
)

// statementFileMost bounds what grant verify reads, in bytes. grant.VerifyStatement has the
// bound of a statement.
const statementFileMost = 64 << 10

// grantExport signs the grant as cloved has it now. cloved has no part in it: the key is the
// state directory's, which only root reads.
func grantExport(p program, c *cli.Context) error {
	if os.Geteuid() != 0 {
		return exportPrivilege(nil)
	}
	d, err := p.cloved(c)
	if err != nil {
		return err
	}
	defer d.Close()
	run, id := c.Args().Get(1), c.Args().Get(2)
	grants, err := client.Collect(client.All(c.Context, d, agents.GrantList, api.GrantListParams{RunParams: api.RunParams{Run: run}}))
	if err != nil {
		return err
	}
	at := slices.IndexFunc(grants, func(g api.Grant) bool { return g.ID == id })
	if at < 0 {
		return noSuchGrant(run, id)
	}
	row, err := grantRow(grants[at])
	if err != nil {
		return err
	}
	key, err := openGrantKey(grantKeyDir(c.String(flagRoot)))
	if errors.Is(err, fs.ErrPermission) {
		return exportPrivilege(err)
	}
	if err != nil {
		return err
	}
	statement, err := grant.Sign(key, row, time.Now())
	if err == nil {
		_, err = p.out.Write(statement)
	}
	return err
}

func exportPrivilege(err error) error {
	return &agent.Error{Kind: agent.KindPrivilege, Step: "grant", Message: "only root has the key that signs statements", Hint: "sudo clove grant export AGENT ID", Err: err}
}

// grantRow is a grant of the API as package grant has it.
func grantRow(g api.Grant) (grant.Grant, error) {
	scope, err := grant.Parse(g.Grant)
	if err != nil {
		return grant.Grant{}, err
	}
	row := grant.Grant{ID: g.ID, Kind: scope.Kind(), Pattern: scope.Pattern(), Rights: scope.Rights(), Expires: g.Expires, UsesLeft: grant.Unlimited,
		Holder: string(g.Holder), Giver: g.Giver, Parent: g.Parent, Reason: g.Reason, Created: g.Created}
	if g.UsesLeft != nil {
		row.UsesLeft = *g.UsesLeft
	}
	return row, nil
}

// grantVerify needs neither cloved nor this host: a statement is checked against a key.
func grantVerify(s *screen, c *cli.Context) error {
	key, err := readGrantPublic(c.Args().Get(2))
	if err != nil {
		return err
	}
	text, err := readBounded(c.Args().Get(1), statementFileMost)
	if err != nil {
		return err
	}
	statement, err := grant.VerifyStatement(key, text)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return s.printJSON(statement)
	}
	_, err = fmt.Fprintln(s.out, printable(statementLine(statement)))
	return err
}

// statementLine is a verified statement for people.
func statementLine(s grant.Statement) string {
	line := fmt.Sprintf("at %s, %s held %s, given by %s at %s", s.Signed.Format(time.RFC3339), s.Holder, s.Scope, s.Giver, s.Created.Format(time.RFC3339))
	if !s.Expires.IsZero() {
		line += ", until " + s.Expires.Format(time.RFC3339)
	}
	if s.Uses != grant.Unlimited {
		line += fmt.Sprintf(", with %d uses left", s.Uses)
	}
	return line + "; whether it still does, only clove grant list shows"
}

// readBounded reads a file that others wrote.
func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, invalid("", "name the file that clove grant export wrote, and grant/public.pem", "%.256q is not a file of at most %d bytes", path, most)
	}
	return os.ReadFile(path)
}

// grantKeyDir is where the key is that signs statements.
func grantKeyDir(state string) string { return filepath.Join(state, "keys", "grant") }

// readGrantPublic reads a public key in PEM form, as openssl does.
func readGrantPublic(path string) (ed25519.PublicKey, error) {
	text, err := readBounded(path, statementFileMost)
	if err != nil {
		return nil, err
	}
	return decodePublic(text)
}
