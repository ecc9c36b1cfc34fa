package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// npmRegistry is npm's own default.
const npmRegistry = "https://registry.npmjs.org/"

// hostAuthorities are the authorities that this host believes. Node.js has a list of its own, without those of a company.
const hostAuthorities = "/etc/ssl/certs/ca-certificates.crt"

// install has npm install a package into a folder of the caller's. npm and what the package runs at its
// installation are in a sandbox that reaches the registry and writes into that folder, and nothing else.
func (p launcher) install(c *cli.Context, what policies.Package, folder string, h host.Host) (err error) {
	if folder == "" {
		return &agent.Error{Kind: agent.KindInvalid, Step: "program", Message: "there is no home to install " + what.Name + " in", Hint: "set HOME"}
	}
	registry, targets, err := registryOf(c.Context, h)
	if err != nil {
		return err
	}
	above := filepath.Dir(folder)
	if err := os.MkdirAll(above, 0o755); err != nil {
		return agent.Failed("program", err)
	}
	work, err := os.MkdirTemp(above, ".installing-")
	if err != nil {
		return agent.Failed("program", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return agent.Failed("program", err)
	}
	defer null.Close()
	// Its output is no agent's, and for people. Its end is not this program's.
	s, a := *p.screen, *p.access
	s.in, s.out, a.ending = null, p.err, nil
	if p.json {
		s.out, s.err = null, null
	} else {
		p.say("clove", cyan, "installing "+what.String()+" with npm, in a sandbox that reaches "+strings.Join(targets, ", ")+" only; once")
	}
	line := append(ownDirectories(c), runName, "--rm", "--"+settings.Memory, "2G", "--"+settings.Timeout, "20m", "--"+settings.Disk, "2G",
		"--"+settings.Volume, work+":/installed")
	for _, target := range targets {
		line = append(line, "--"+settings.Allow, target)
	}
	if host.IsFile(hostAuthorities) {
		line = append(line, "--"+settings.Env, "NODE_EXTRA_CA_CERTS="+hostAuthorities)
	}
	line = append(line, terminator, "npm", "install", "--prefix", "/installed", "--registry", registry, "--fetch-retries", "1", "--fetch-retry-mintimeout", "1000",
		"--no-audit", "--no-fund", "--no-update-notifier", "--loglevel", "error", what.String())
	if status := (program{&s, &a}).execute(line); status != 0 {
		return &agent.Error{Kind: agent.KindInternal, Step: "program", Message: what.String() + " could not be installed", Hint: "npm must be installed on this host; or install the program yourself, and it is used"}
	}
	if err := os.Rename(work, folder); err != nil && !errors.Is(err, fs.ErrExist) { // another run was faster
		return agent.Failed("program", err)
	}
	return nil
}

// registryOf is the registry that the caller's environment names for npm, or npm's own, and the targets that
// open it. One that the caller names may have addresses that no name opens, as private ones: they are
// opened, too, as they are now.
func registryOf(ctx context.Context, h host.Host) (registry string, targets []string, err error) {
	lower, _ := h.Lookup("npm_config_registry")
	upper, _ := h.Lookup("NPM_CONFIG_REGISTRY")
	registry = cmp.Or(lower, upper, npmRegistry)
	u, err := url.Parse(registry)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return "", nil, invalid("", "write its URL, as "+npmRegistry, "npm_config_registry is no registry: %.128q", registry)
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	targets = []string{net.JoinHostPort(u.Hostname(), port)}
	if lower == "" && upper == "" {
		return registry, targets, nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return "", nil, &agent.Error{Kind: agent.KindInvalid, Message: "npm_config_registry cannot be found", Hint: "write a URL that this host reaches", Err: err}
	}
	for _, a := range addresses {
		if target := net.JoinHostPort(a.Unmap().String(), port); !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	return registry, targets, nil
}
