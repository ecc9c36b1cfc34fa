package main

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/secrets"
)

// Flags of clove secret that no other command has.
const (
	flagFromFile    = "from-file"
	flagSecretHost  = "host"
	flagRequest     = "request"
	flagHeader      = "header"
	flagIn          = "in"
	flagCA          = "ca"
	flagPlaceholder = "placeholder"
	flagSSH         = "ssh"
	flagKnownHosts  = "known-hosts"
	flagPlain       = "plain"
)

func secretCommand() command {
	name := func(_ *line, r api.SecretResult) string { return r.Secret.Name }
	return command{
		task: "decide", usage: "keep secrets that agents use and never have",
		verbs: []verb{
			{line: "clove secret set [--host HOST] [--request RULE] [--header HEADER] [--in PLACE] [--placeholder PREFIX] [--ca FILE] [--ssh] [--known-hosts FILE] [--user USER] [--plain] [--uses N] [--expires TIME] [--from-file FILE] [--json] NAME",
				act: ask(methods.SecretSet).fills(fillSecret).shows(says(name))},
			{line: "clove secret list [--all] [--json]", act: listSecrets()},
			{line: "clove secret uses [--json] [NAME]", act: listUses()},
			{line: "clove secret rotate [--from-file FILE] [--json] NAME", act: ask(methods.SecretRotate).fills(func(l *line, p *api.SecretRotateParams) (err error) {
				p.Value, err = readSecretValue(l)
				return err
			}).shows(says(name))},
			{line: "clove secret check [--json]", act: ask(methods.SecretCheck).shows(showSecretCheck)},
			{line: "clove secret rm NAME", act: ask(methods.SecretRemove).shows(says(func(l *line, _ api.Nothing) string { return l.args[0] }))},
		},
		description: "set keeps a secret of yours, encrypted, for requests to HOST (NAME or NAME:PORT); it reads the value from FILE, or\n" +
			"from stdin (-, and without --from-file). An agent that was started with --secret has a placeholder, which is replaced on\n" +
			"the way out. RULE is a method and a pattern of paths, such as 'GET /repos/**'; without one all requests may carry it. HEADER is\n" +
			"the one header that carries it, and PLACE is body or url, where it may be besides. Placeholders begin with PREFIX.\n" +
			"With --ssh it is a private key, which signs for ssh that USER logs in to HOST, whose keys FILE has. With --plain an agent may read\n" +
			"it in a file, if it was started so; then it needs no HOST.\n" +
			"rotate gives it another value, also for runs that use it. uses lists the requests that carried it; rm forgets it.",
		flags: []cli.Flag{
			&cli.StringSliceFlag{Name: flagSecretHost, Usage: "set: a host that gets it; repeat it for more"},
			&cli.StringSliceFlag{Name: flagRequest, Usage: "set: requests to the hosts that may pass; repeat it for more", DefaultText: "all"},
			&cli.StringFlag{Name: flagHeader, Usage: "set: the header that carries it", DefaultText: secrets.DefaultHeader},
			&cli.StringSliceFlag{Name: flagIn, Usage: "set: body or url, which may carry it, too"},
			&cli.StringFlag{Name: flagPlaceholder, Usage: "set: what placeholders begin with, for programs that look at it, such as ghp_"},
			&cli.StringFlag{Name: flagCA, Usage: "set: certificates of the authorities of the hosts, in PEM form; only root", DefaultText: "those of the system"},
			&cli.BoolFlag{Name: flagSSH, Usage: "set: it is a private key of ssh, without a passphrase", DisableDefaultText: true},
			&cli.StringFlag{Name: flagKnownHosts, Usage: "set: a file with the keys of the hosts of an ssh key, such as ~/.ssh/known_hosts"},
			&cli.StringFlag{Name: flagUser, Usage: "set: the user on the hosts of an ssh key", DefaultText: "git"},
			&cli.BoolFlag{Name: flagPlain, Usage: "set: an agent may read it, with --secret NAME:plain", DisableDefaultText: true},
			&cli.StringFlag{Name: flagUses, Usage: "set: how many requests may carry it", DefaultText: "any number"},
			&cli.StringFlag{Name: flagExpires, Usage: "set: how long it can be used, such as 90d, or until when", DefaultText: "at any time"},
			&cli.StringFlag{Name: flagFromFile, Usage: "set, rotate: the file of the value; - is stdin", DefaultText: "stdin"},
			&cli.BoolFlag{Name: flagAll, Usage: "list: those of all users; only root", DisableDefaultText: true},
			jsonFlag("print JSON"),
		},
	}
}

func fillSecret(l *line, p *api.SecretSetParams) (err error) {
	c := l.Context
	p.Terms = secrets.Terms{Hosts: c.StringSlice(flagSecretHost), Allow: c.StringSlice(flagRequest), Header: c.String(flagHeader), In: c.StringSlice(flagIn), Prefix: c.String(flagPlaceholder), Plain: c.Bool(flagPlain)}
	if len(p.Terms.Hosts) == 0 && !p.Terms.Plain {
		return invalid(flagSecretHost, "name the host that gets the secret, for example --host api.github.com", "the secret is for no host")
	}
	if file := c.String(flagCA); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return invalid(flagCA, "name a file of certificates", "%v", err)
		}
		p.Terms.CA = string(text)
	}
	if err := fillSSH(l, &p.Terms); err != nil {
		return err
	}
	if _, err := p.Terms.Normal(); err != nil { // before a value is asked for
		return invalid("", "", "%v", err)
	}
	if p.Value, err = readSecretValue(l); err != nil {
		return err
	}
	if err := p.Terms.CheckValue([]byte(p.Value)); err != nil { // cloved reads keys
		return invalid(flagFromFile, "write it into a file in one line, or pipe it in: printf %s TOKEN | clove secret …; the file of a private key takes --ssh", "%v", err)
	}
	return nil
}

// fillSSH reads what an ssh key is for.
func fillSSH(l *line, t *secrets.Terms) error {
	file, user := l.String(flagKnownHosts), l.String(flagUser)
	if !l.Bool(flagSSH) {
		if file != "" || user != "" {
			return invalid(flagSSH, "add --ssh", "the keys of hosts and the user on them are for ssh")
		}
		return nil
	}
	if file == "" {
		return invalid(flagKnownHosts, "name a file with the keys of the hosts, for example ~/.ssh/known_hosts; ssh-keyscan HOST prints them, which you compare with those that the host makes known", "an ssh key is for hosts whose keys are known, and none is named")
	}
	of := secrets.Terms{Hosts: t.Hosts, SSH: &secrets.SSH{User: user}}
	text, err := os.ReadFile(file)
	if err != nil {
		return invalid(flagKnownHosts, "name a file with the keys of the hosts", "%v", err)
	}
	hosts, err := of.NormalHosts()
	if err == nil {
		of.SSH.HostKeys, err = secrets.KnownHosts(string(text), hosts)
	}
	if err != nil {
		return invalid(flagKnownHosts, "", "%v", err)
	}
	t.SSH = of.SSH
	return nil
}

// readSecretValue reads a value without the end of its last line.
func readSecretValue(l *line) (string, error) {
	file := l.String(flagFromFile)
	var from io.Reader = os.Stdin
	if file != "" && file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return "", invalid(flagFromFile, "name a file, or - for stdin", "%v", err)
		}
		defer opened.Close()
		from = opened
	}
	text, err := readHidden(from)
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(text), "\r\n")
	clear(text)
	return value, nil
}

// secretRow is a row of clove secret list.
type secretRow struct {
	Name  string `col:"NAME"`
	Hosts string `col:"HOSTS"`
	Uses  string `col:"USES"`
	Last  string `col:"LAST USE"`
	By    string `col:"BY"`
}

func listSecrets() *call[api.SecretListParams, api.SecretListResult] {
	a := ask(methods.SecretList).fills(func(l *line, p *api.SecretListParams) error { p.All = l.Bool(flagAll); return nil })
	a.view = func(r api.SecretListResult) any {
		rows := []secretRow{}
		for _, one := range r.Secrets {
			row := secretRow{Name: one.Name, Hosts: hostsOf(one.Terms), Uses: strconv.FormatInt(one.Uses, 10), Last: "-", By: "-"}
			if one.MaxUses > 0 {
				row.Uses += " of " + strconv.FormatInt(one.MaxUses, 10)
			}
			if one.Last != nil {
				row.Last, row.By = age(time.Since(one.Last.Time)), one.Last.Agent
			}
			rows = append(rows, row)
		}
		return rows
	}
	return a
}

// hostsOf are the hosts of a secret, as people write them.
func hostsOf(t secrets.Terms) string {
	var all []string
	for _, host := range t.Hosts {
		if t.SSH != nil {
			host = secrets.Target(secrets.MethodSSH, host, t.SSH.User)
		}
		all = append(all, secrets.ShortHost(host))
	}
	return cmp.Or(strings.Join(all, ","), "-")
}

// useRow is a row of clove secret uses.
type useRow struct {
	Age     string `col:"AGE"`
	Secret  string `col:"SECRET"`
	Agent   string `col:"AGENT"`
	Request string `col:"REQUEST"`
}

func listUses() *call[api.SecretUsesParams, api.SecretUsesResult] {
	a := ask(methods.SecretUses)
	a.view = func(r api.SecretUsesResult) any {
		rows := []useRow{}
		for _, u := range r.Uses {
			rows = append(rows, useRow{age(time.Since(u.Time)), u.Secret, u.Agent, quoted(secrets.ShortTarget(u.Method, u.Host, u.Path))})
		}
		return rows
	}
	return a
}

// showSecretCheck also ends with status 1 where a secret cannot be used.
func showSecretCheck(s *screen, l *line, r api.SecretCheckResult) error {
	err := printSecretCheck(s, l, r)
	if err == nil && len(r.Problems) > 0 {
		return exitStatus(1)
	}
	return err
}

func printSecretCheck(s *screen, l *line, r api.SecretCheckResult) error {
	if l.Bool(flagJSON) {
		return s.printJSON(r)
	}
	var lines []any
	for _, problem := range r.Problems {
		lines = append(lines, problem)
	}
	if len(lines) == 0 {
		lines = append(lines, strconv.Itoa(r.Checked)+" secrets can be used")
	}
	return s.printLines(lines)
}

// reportReadable says which secrets the agent can read.
func reportReadable(s *screen, spec agent.Spec) {
	if names := spec.Kernel.ReadableSecrets(); len(names) > 0 {
		s.say("clove", red, "the agent can read the secrets "+strings.Join(names, ", ")+" in "+secrets.PlainDir+", and send them to where its network leads")
	}
}
