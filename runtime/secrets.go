package runtime

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/egress"
	"clove.run/clove/egress/swap"
	swaplink "clove.run/clove/egress/swap/link"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/rootfs"
	"clove.run/clove/secrets"
)

// Secrets keeps the secrets of a run. cloved does.
type Secrets interface {
	// Secrets returns those that the run was started with. Their values are written into a pipe, whose reading end is for the
	// process that puts them into requests alone. With plain they are those that the agent is to read.
	Secrets(ctx context.Context, run agent.ID, plain bool, values *os.File) ([]api.Secret, error)
	// UseSecret decides one request that is to carry a secret. The error is an *api.Error.
	UseSecret(ctx context.Context, use api.SecretUseParams) (api.SecretUseResult, error)
}

// Users of the two processes of egress/swap (agent.ServiceID): the numbers are no process's of package models.
const (
	outerProcess = 5001
	innerProcess = 5002
)

// secretsUsed has what a run's agent uses of secrets. nil: it may use none.
type secretsUsed struct {
	*swap.Swap // nil: the agent reads all of them
	keeper     Secrets
	ask        func(context.Context, api.SecretUseParams) (api.Approval, error) // people
	hold       time.Duration                                                    // a request, for their answer
	run        agent.ID
	denials    *denials
	refused    func()
	files      map[string]string // placeholders, by the path of their file inside
	plain      map[string]string // secrets that the agent reads, until they are in its sandbox

	mu       sync.Mutex        // guards versions
	versions map[string]uint64 // of the values that the inner process has
}

// secretsStart is the part of a launch about secrets.
type secretsStart struct{ *launch }

// open starts the swap, and gives the agent's environment what it needs for it.
func (l secretsStart) open() error {
	if len(l.spec.Kernel.Secrets) == 0 {
		return nil
	}
	if l.streams.Secrets == nil {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "secrets", Message: "secrets are kept by cloved, which does not run here", Hint: "systemctl start cloved, or leave --secret out"}
	}
	s := &secretsUsed{keeper: l.streams.Secrets, run: l.spec.ID, denials: l.denials, refused: l.refusals.add, plain: map[string]string{}, versions: map[string]uint64{}, hold: cmp.Or(l.spec.Kernel.AskHold, agent.AskHold)}
	s.ask = func(ctx context.Context, use api.SecretUseParams) (api.Approval, error) {
		return l.share.question(ctx, api.ApprovalAskParams{Kind: api.ApproveSecret, Secret: &use})
	}
	l.secrets = s
	if err := s.readPlain(l.spec); err != nil || len(l.spec.Kernel.ReadableSecrets()) == len(l.spec.Kernel.Secrets) {
		return err
	}
	all, read, err := s.values(context.Background(), false)
	if err != nil {
		return err
	}
	config := swap.Config{Program: besideInit(l.runtime.init, swap.Program), IDs: [2]uint32{agent.ServiceID(os.Getpid(), outerProcess), agent.ServiceID(os.Getpid(), innerProcess)},
		Roots: openRoots(), Values: read, Use: s.decide, Denied: s.denied}
	placed, err := checkSecrets(l.spec, l.rules, all)
	if err == nil && placed.signs {
		config.SSHIDs = swaplink.IDs{First: l.run.Lease.HostID(), Count: agent.IDsPerAgent}
		config.SSH, err = listenInServices(l.runtime.paths.services(l.spec.ID), sshSocketName)
	}
	if err != nil {
		read.Close()
		return err
	}
	config.Secrets, s.files = placed.secrets, placed.files
	if s.Swap, err = swap.Start(config); err != nil {
		return err
	}
	l.undo.Add("secrets", s.Stop)
	go s.watch()
	env, err := l.trust(s.CA(), placed.programs.Files)
	l.spec.Env = slices.Concat(l.spec.Env, placed.env, l.unset(slices.Concat(placed.programs.Env, env)))
	return err
}

// values has the keeper write all values into a pipe, and returns its reading end.
func (s *secretsUsed) values(ctx context.Context, plain bool) ([]api.Secret, *os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer write.Close()
	_ = setPipeSize(write, swaplink.ValuesBytes) // without it few long values fit, and the keeper says so
	all, err := s.keeper.Secrets(ctx, s.run, plain, write)
	if err != nil {
		read.Close()
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range all {
		s.versions[one.Name] = one.Version
	}
	return all, read, nil
}

func setPipeSize(pipe *os.File, bytes int) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(raw.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bytes) }), err)
}

// placed are the placeholders of a run.
type placed struct {
	secrets  []swaplink.Secret
	env      []string
	files    map[string]string // by their paths inside
	programs secrets.ProgramSettings
	signs    bool // one is an ssh key
}

// CheckSecrets refuses a run whose secrets it could not use: all are those that it is started with.
func CheckSecrets(spec agent.Spec, owner agent.Owner, all []api.Secret) error {
	var swapped []api.Secret
	for _, one := range all {
		for _, text := range spec.Kernel.Secrets {
			m, err := secrets.ParseMount(text)
			switch {
			case err != nil || m.Secret != one.Name:
			case m.As != secrets.MountPlain:
				swapped = append(swapped, one)
			case !one.Terms.Plain:
				return api.NotPlain(one.Name)
			case spec.Kernel.People(agent.AskSecret) > 0 && !grant.Covered(spec.Kernel.Grants, "secret:"+one.Name):
				return unasked(one.Name)
			}
		}
	}
	rules, err := rulesOf(spec, owner)
	if err == nil {
		_, err = checkSecrets(spec, rules, swapped)
	}
	return err
}

func checkSecrets(spec agent.Spec, rules *egress.Rules, all []api.Secret) (p placed, err error) {
	if err := allowsHosts(spec, rules, all); err != nil {
		return p, err
	}
	return place(all, spec)
}

// place makes a placeholder for each secret, and puts it where the spec says.
func place(all []api.Secret, spec agent.Spec) (p placed, err error) {
	p.files, p.programs.Dir = map[string]string{}, rootfs.ServicesDir
	for _, one := range all {
		placeholder := secrets.NewPlaceholder(one.Terms.Prefix)
		p.secrets = append(p.secrets, swaplink.Secret{Name: one.Name, Placeholder: placeholder, Terms: one.Terms})
		for _, text := range spec.Kernel.Secrets {
			m, err := secrets.ParseMount(text)
			switch {
			case err != nil:
				return p, err
			case m.Secret != one.Name, m.As == secrets.MountPlain:
			case (m.As == secrets.MountSSH) != (one.Terms.SSH != nil) || len(one.Terms.Hosts) == 0:
				return p, &agent.Error{Kind: agent.KindInvalid, Step: "secrets", Message: fmt.Sprintf("the secret %s is no %s", one.Name, kindOf(m)), Hint: "give it to the run as " + one.Name + ":" + formOf(one.Terms)}
			case m.As == secrets.MountSSH:
				p.signs = true
				p.programs.SSH(*one.Terms.SSH)
			case m.As == secrets.MountEnv:
				p.env = append(p.env, m.To+"="+placeholder)
			case m.As == secrets.MountFile:
				p.files[m.To] = placeholder + "\n"
			default:
				if err := p.programs.Add(m.As, one.Terms, placeholder); err != nil {
					return p, &agent.Error{Kind: agent.KindInvalid, Step: "secrets", Message: text, Err: err, Hint: "give its placeholder with " + m.Secret + ":env=VARIABLE"}
				}
			}
		}
	}
	return p, nil
}

// kindOf is what a mount needs.
func kindOf(m secrets.Mount) string {
	if m.As == secrets.MountSSH {
		return "ssh key"
	}
	return "text for requests"
}

// formOf is a mount that a secret can have.
func formOf(t secrets.Terms) string {
	switch {
	case t.SSH != nil:
		return secrets.MountSSH
	case len(t.Hosts) == 0:
		return secrets.MountPlain
	}
	return secrets.MountEnv + "=VARIABLE"
}

// allowsHosts refuses a secret for a host that the network forbids: every use would be refused.
func allowsHosts(spec agent.Spec, rules *egress.Rules, all []api.Secret) error {
	if spec.Kernel.People(agent.AskNet) > 0 {
		return nil // people are asked about it
	}
	for _, one := range all {
		for _, host := range one.Terms.Hosts {
			name, _ := secrets.SplitHost(host)
			if verdict := rules.Resolve(egress.Name(name)); !verdict.Allowed {
				return &agent.Error{Kind: agent.KindInvalid, Step: "secrets", Message: fmt.Sprintf("the secret %s is for %s, which the network's rules do not allow", one.Name, host), Hint: "add --allow " + secrets.ShortHost(host)}
			}
		}
	}
	return nil
}

// decide has the keeper decide a use, and passes on new values first.
func (s *secretsUsed) decide(ctx context.Context, on *swap.Swap, use swaplink.Use) swaplink.Verdict {
	result, err := s.use(ctx, api.SecretUseParams{Run: s.run, Secret: use.Secret, Host: use.Host, Method: use.Method, Path: use.Path})
	if err == nil {
		err = s.renew(ctx, on, use.Secret, result.Version)
	}
	if err != nil {
		f := api.ErrorOf(err)
		definite := f.Code == api.CodeDenied || f.Code == api.CodeBudget || f.Code == api.CodeNotFound
		return swaplink.Verdict{Reason: f.Message, Busy: !definite}
	}
	return swaplink.Verdict{}
}

// use has the keeper decide, and people where it has no answer of theirs. A yes for one time may be another request's by then: they are
// asked again.
func (s *secretsUsed) use(ctx context.Context, use api.SecretUseParams) (api.SecretUseResult, error) {
	ctx, cancel := context.WithTimeout(ctx, s.hold)
	defer cancel()
	for {
		result, err := s.keeper.UseSecret(ctx, use)
		if err == nil || api.ErrorOf(err).Code != api.CodeConflict {
			return result, err
		}
		if _, err := s.ask(ctx, use); ctx.Err() != nil {
			return result, api.Failure(api.CodeBusy, "", "people have not answered in %s", s.hold)
		} else if err != nil {
			return result, err
		}
	}
}

// renew has the inner process learn the values again, if it has an older one of a secret.
func (s *secretsUsed) renew(ctx context.Context, on *swap.Swap, name string, version uint64) error {
	s.mu.Lock()
	old := s.versions[name] != version
	s.mu.Unlock()
	if !old {
		return nil
	}
	_, read, err := s.values(ctx, false)
	if err != nil {
		return err
	}
	return on.Renew(read)
}

// denied puts what was refused, or left with a placeholder, into the record.
func (s *secretsUsed) denied(d swaplink.Denied) {
	target := secrets.Target(d.Method, d.Host, d.Path)
	rule := string(d.Reason)
	if d.Secret != "" {
		rule = d.Secret + ": " + rule
	}
	s.refused()
	if !s.denials.count(agent.DenialSecret, target) {
		s.denials.add(agent.Denial{Kind: agent.DenialSecret, Target: target, Rule: rule}, reasonOf(d), secrets.DenialHints[string(d.Reason)])
	}
}

func reasonOf(d swaplink.Denied) string {
	switch d.Reason {
	case swaplink.ReasonPlace:
		return "the placeholder of " + d.Secret + " is in the " + d.Detail + ", where the secret may not be: it left as it was"
	case swaplink.ReasonForeign:
		return "a placeholder that is not for this host is in the " + d.Detail + ": it left as it was"
	}
	return d.Detail
}

// watch reports the end of a process: nothing leads to the hosts of secrets any more.
func (s *secretsUsed) watch() {
	select {
	case err := <-s.Lost():
		s.denials.add(agent.Denial{Kind: agent.DenialSecret, Target: "everything", Rule: "fail closed"}, err.Error(), "the run goes on; start it again to use its secrets")
	case <-s.Done():
	}
}

// archiveOf is a tar archive of files, by their paths inside, readable for the agent alone.
func archiveOf(files map[string]string, mode int64) (*bytes.Buffer, error) {
	out := &bytes.Buffer{}
	w := tar.NewWriter(out)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path.Clean(name), "/"), Mode: mode, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	return out, w.Close()
}

// putSecrets makes the files of placeholders, and of secrets that the agent reads: these in memory, where files of other agents may not
// go.
func (l given) putSecrets() error {
	if l.secrets == nil {
		return nil
	}
	placeholders, err := archiveOf(l.secrets.files, 0o600)
	if err != nil {
		return err
	}
	plain, err := archiveOf(l.secrets.plain, 0o400)
	if err != nil {
		return err
	}
	l.secrets.plain = nil
	if err := l.putArchive(bufio.NewReader(placeholders), true); err != nil {
		return err
	}
	return l.putArchive(bufio.NewReader(plain), false)
}
