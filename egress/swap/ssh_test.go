package swap

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/internal/packet"
	"clove.run/clove/secrets"
)

// sshRig is a run's ssh agent, and a host that knows its key.
type sshRig struct {
	*rig
	socket     string
	host, user ssh.Signer // the host's key, and that of the secret
	during     func()     // guarded by mu: is called with each decision; nil: nothing is
}

func newSigner(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	return signer, string(pem.EncodeToMemory(block))
}

// pinned is a host's key as terms have it.
func pinned(host string, key ssh.Signer) string {
	return host + " " + key.PublicKey().Type() + " " + base64.StdEncoding.EncodeToString(key.PublicKey().Marshal())
}

// newSSHRig has the secret KEY for git@example.com. taken gets the channel of an outer side that the test is; nil: it is the real one.
func newSSHRig(t *testing.T, taken chan<- *packet.Conn, ids link.IDs) *sshRig {
	t.Helper()
	r := &sshRig{rig: &rig{t: t}, socket: filepath.Join(t.TempDir(), "s")}
	var private string
	r.host, _ = newSigner(t)
	r.user, private = newSigner(t)
	terms, err := secrets.Terms{Hosts: []string{site}, SSH: &secrets.SSH{HostKeys: []string{pinned(site+":22", r.host)}}}.Normal()
	must(t, err)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.socket})
	must(t, err)
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	file, err := listener.File()
	must(t, err)
	read, write, err := os.Pipe()
	must(t, err)
	must(t, json.NewEncoder(write).Encode(link.Values{"KEY": private}))
	write.Close()
	r.swap, err = start(Config{Secrets: []link.Secret{{Name: "KEY", Terms: terms}}, Values: read, SSH: file, SSHIDs: ids, Use: r.decide, Denied: r.note}, func(_ string, _ uint32, files ...*os.File) (process, error) {
		return sideOf(taken, files...)
	})
	must(t, err)
	t.Cleanup(func() { r.swap.Stop() })
	return r
}

func (r *sshRig) decide(ctx context.Context, on *Swap, use link.Use) link.Verdict {
	r.mu.Lock()
	during := r.during
	r.mu.Unlock()
	if during != nil {
		during()
	}
	return r.use(ctx, on, use)
}

// set changes what the other goroutines read.
func (r *sshRig) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// self are the ids of the tests' process.
func self() link.IDs { return link.IDs{First: uint32(os.Getuid()), Count: 1} }

// dialled is a connection to the agent.
func (r *sshRig) dialled() agent.ExtendedAgent {
	r.t.Helper()
	conn, err := net.Dial("unix", r.socket)
	must(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	must(r.t, conn.SetDeadline(time.Now().Add(soon)))
	return agent.NewClient(conn)
}

// attempt is what ssh does: it binds its connection to a session, and has an authentication signed.
type attempt struct {
	session       []byte
	host          ssh.Signer // signs the session
	shown         ssh.Signer // whose key is shown
	forwarded     byte
	unbound       bool
	again         *attempt // another bind
	kind          byte
	user, service string
	method        string
	signed        byte
	algorithm     string
	bound         ssh.Signer // in the text of the method that names a host
	of            []byte     // the session in the text
	key           []byte     // in the text
	more          string     // behind the text
	text          []byte     // in place of all this
}

func (r *sshRig) sound() *attempt {
	session := make([]byte, 32)
	_, _ = rand.Read(session) // it never fails
	return &attempt{session: session, host: r.host, shown: r.host, kind: 50, user: "git", service: "ssh-connection", method: "publickey-hostbound-v00@openssh.com", signed: 1,
		algorithm: ssh.KeyAlgoED25519, bound: r.host, of: session, key: r.user.PublicKey().Marshal()}
}

func (a *attempt) bind(to agent.ExtendedAgent) error {
	proof, err := a.host.Sign(rand.Reader, a.session)
	if err != nil {
		return err
	}
	_, err = to.Extension("session-bind@openssh.com", ssh.Marshal(struct {
		Key, Session, Proof []byte
		Forwarded           byte
	}{a.shown.PublicKey().Marshal(), a.session, ssh.Marshal(proof), a.forwarded}))
	return err
}

func (a *attempt) data() []byte {
	if a.text != nil {
		return a.text
	}
	text := ssh.Marshal(struct {
		Session               []byte
		Kind                  byte
		User, Service, Method string
		Signed                byte
		Algorithm             string
		Key                   []byte
	}{a.of, a.kind, a.user, a.service, a.method, a.signed, a.algorithm, a.key})
	if a.bound != nil {
		text = append(text, ssh.Marshal(struct{ Key []byte }{a.bound.PublicKey().Marshal()})...)
	}
	return append(text, a.more...)
}

// signs reports whether the agent signs what is attempted.
func (r *sshRig) signs(a *attempt) bool {
	r.t.Helper()
	to := r.dialled()
	if !a.unbound {
		_ = a.bind(to) // ssh goes on without it, too
	}
	if a.again != nil {
		_ = a.again.bind(to)
	}
	signature, err := to.Sign(r.user.PublicKey(), a.data())
	if err != nil {
		return false
	}
	if err := r.user.PublicKey().Verify(a.data(), signature); err != nil {
		r.t.Errorf("another text is signed: %v", err)
	}
	return true
}

// The agent signs that the one user authenticates to the one host in a session that the host has proved, with both methods, and lists its
// key.
func TestTheSSHAgentSigns(t *testing.T) {
	t.Parallel()
	r := newSSHRig(t, nil, self())
	keys, err := r.dialled().List()
	if err != nil || len(keys) != 1 || keys[0].Comment != "KEY" || string(keys[0].Blob) != string(r.user.PublicKey().Marshal()) {
		t.Errorf("%v, %v", keys, err)
	}
	plain := r.sound()
	plain.method, plain.bound = "publickey", nil
	if !r.signs(r.sound()) || !r.signs(plain) {
		t.Error("it does not sign")
	}
	if r.used() != 2 || r.uses[0].Secret != "KEY" || r.uses[0].Host != "example.com:22" || r.uses[0].Method != secrets.MethodSSH || r.uses[0].Path != "git" || len(r.noted(0)) != 0 {
		t.Errorf("%+v, %+v", r.uses, r.denied)
	}
	if len(r.swap.CA()) > 0 || r.swap.Takes(site, 22) || r.swap.Takes(site, 443) {
		t.Error("an authority is made for ssh, or connections of ssh pass through here")
	}
}

// All else is refused and reported. The control of each row is the sound attempt, from which it differs in one way, and which is signed
// on another connection.
func TestWhatTheSSHAgentRefuses(t *testing.T) {
	t.Parallel()
	other, _ := newSigner(t)
	r := newSSHRig(t, nil, self())
	sshsig := append([]byte("SSHSIG"), ssh.Marshal(struct{ Namespace, Reserved, Hash, Of string }{"git", "", "sha512", strings.Repeat("h", 64)})...)
	for about, row := range map[string]struct {
		change func(*attempt)
		reason link.Reason
		detail string
	}{
		"an unbound connection":           {func(a *attempt) { a.unbound = true }, link.ReasonForm, "not bound"},
		"ssh-keygen -Y sign":              {func(a *attempt) { a.text = sshsig }, link.ReasonForm, "no authentication"},
		"another text":                    {func(a *attempt) { a.text = []byte("pay 100") }, link.ReasonForm, "no authentication"},
		"an empty text":                   {func(a *attempt) { a.text = []byte{} }, link.ReasonForm, "no authentication"},
		"a forwarded agent":               {func(a *attempt) { a.forwarded = 1 }, link.ReasonForm, "forwarded"},
		"a flag that is none":             {func(a *attempt) { a.forwarded = 2 }, link.ReasonForm, "malformed"},
		"another user":                    {func(a *attempt) { a.user = "root" }, link.ReasonName, "for the user git"},
		"no user":                         {func(a *attempt) { a.user = "" }, link.ReasonName, "for the user git"},
		"another service":                 {func(a *attempt) { a.service = "ssh-userauth" }, link.ReasonForm, "no authentication"},
		"another method":                  {func(a *attempt) { a.method = "hostbased" }, link.ReasonForm, "no authentication"},
		"another message":                 {func(a *attempt) { a.kind = 51 }, link.ReasonForm, "no authentication"},
		"a question for a key":            {func(a *attempt) { a.signed = 0 }, link.ReasonForm, "no authentication"},
		"more behind the text":            {func(a *attempt) { a.more = "x" }, link.ReasonForm, "no authentication"},
		"another session":                 {func(a *attempt) { a.of = make([]byte, 32) }, link.ReasonForm, "another session"},
		"another key in the text":         {func(a *attempt) { a.key = other.PublicKey().Marshal() }, link.ReasonForm, "no authentication"},
		"another host in the text":        {func(a *attempt) { a.bound = other }, link.ReasonForm, "another host"},
		"no host in the text":             {func(a *attempt) { a.bound = nil }, link.ReasonForm, "no authentication"},
		"an algorithm that is none":       {func(a *attempt) { a.algorithm = "ssh-rsa" }, link.ReasonForm, "does not sign"},
		"a host that is not pinned":       {func(a *attempt) { a.host, a.shown, a.bound = other, other, other }, link.ReasonName, "not one of the secret's"},
		"a session that the host did not": {func(a *attempt) { a.host = other }, link.ReasonCert, "has not signed"},
		"a session that is no hash":       {func(a *attempt) { a.session, a.of = []byte("hostkeys-prove"), []byte("hostkeys-prove") }, link.ReasonCert, "identifier"},
		"a second session": {func(a *attempt) {
			again := *a
			again.session = make([]byte, 32)
			a.again = &again
		}, link.ReasonForm, "already"},
		"a second host":  {func(a *attempt) { again := *a; again.host, again.shown = other, other; a.again = &again }, link.ReasonForm, "already"},
		"the same again": {func(a *attempt) { a.again = a }, link.ReasonForm, "already"},
	} {
		r := newSSHRig(t, nil, self())
		a := r.sound()
		row.change(a)
		if r.signs(a) {
			t.Errorf("%s: it is signed", about)
			continue
		}
		if first := r.noted(1)[0]; first.Reason != row.reason || !strings.Contains(first.Detail, row.detail) || first.Method != secrets.MethodSSH {
			t.Errorf("%s: %+v", about, first)
		}
		if again := r.sound(); !r.signs(again) {
			t.Errorf("control of %s", about)
		}
	}
	to := r.dialled()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	_, unknown := to.Extension("query", nil)
	for about, err := range map[string]error{
		"add": to.Add(agent.AddedKey{PrivateKey: private}), "remove": to.Remove(r.user.PublicKey()), "remove all": to.RemoveAll(), "lock": to.Lock([]byte("x")), "unlock": to.Unlock([]byte("x")), "extension": unknown,
	} {
		if err == nil {
			t.Errorf("%s is not refused", about)
		}
	}
	if _, err := to.Sign(other.PublicKey(), r.sound().data()); err == nil {
		t.Error("another key signs")
	}
}

// A use that is refused is not signed, and a user of the host that is not the sandbox's gets no answer.
func TestTheSSHAgentsUses(t *testing.T) {
	t.Parallel()
	r := newSSHRig(t, nil, self())
	r.set(func() { r.refuse = link.Verdict{Reason: "its 1 uses are used up"} })
	if r.signs(r.sound()) || r.noted(1)[0].Reason != link.ReasonUse || r.noted(1)[0].Secret != "KEY" {
		t.Errorf("%+v", r.denied)
	}
	stranger := newSSHRig(t, nil, link.IDs{First: uint32(os.Getuid()) + 1, Count: 65536})
	if keys, err := stranger.dialled().List(); err == nil {
		t.Errorf("%v", keys)
	}
}

// With a new key, which comes with a use, the old one signs no more: the next connection finds the new one. The control is the new key.
func TestTheSSHAgentWithANewKey(t *testing.T) {
	t.Parallel()
	r := newSSHRig(t, nil, self())
	renewed, private := newSigner(t)
	renew := func() {
		read, write, err := os.Pipe()
		if err == nil {
			err = json.NewEncoder(write).Encode(link.Values{"KEY": private})
			write.Close()
		}
		if err == nil {
			err = r.swap.Renew(read)
		}
		if err != nil {
			t.Error(err)
		}
	}
	r.set(func() { r.during = renew })
	if r.signs(r.sound()) || r.noted(1)[0].Reason != link.ReasonUse || !strings.Contains(r.noted(1)[0].Detail, "another value") {
		t.Errorf("%+v", r.denied)
	}
	r.set(func() { r.during = nil })
	if r.signs(r.sound()) {
		t.Error("the old key signs")
	}
	r.user = renewed
	if keys, err := r.dialled().List(); err != nil || len(keys) != 1 || string(keys[0].Blob) != string(renewed.PublicKey().Marshal()) {
		t.Errorf("%v, %v", keys, err)
	}
	if !r.signs(r.sound()) {
		t.Error("control: the new key does not sign")
	}
}

// An outer side that was taken over gets no signature but those that its run may have. The control is the sound question.
func TestAnOuterSideThatWasTakenOverSignsNothingElse(t *testing.T) {
	t.Parallel()
	other, _ := newSigner(t)
	taken := make(chan *packet.Conn, 1)
	r := newSSHRig(t, taken, self())
	to := <-taken
	var m link.ToOuter
	if _, err := to.Receive(&m); err != nil || len(m.Keys["KEY"]) == 0 {
		t.Fatalf("%+v, %v", m, err)
	}
	ask := func(change func(*link.Sign)) []byte {
		t.Helper()
		a := r.sound()
		proof, err := r.host.Sign(rand.Reader, a.session)
		must(t, err)
		q := link.Sign{Number: 1, Key: a.key, Session: a.session, HostKey: r.host.PublicKey().Marshal(), Proof: ssh.Marshal(proof), User: a.user, Algorithm: a.algorithm}
		change(&q)
		must(t, to.Send(link.ToInner{Sign: &q}))
		var m link.ToOuter
		if _, err := to.Receive(&m); err != nil || m.Signed == nil {
			t.Fatalf("%+v, %v", m, err)
		}
		return m.Signed.Signature
	}
	for about, change := range map[string]func(*link.Sign){
		"another user":         func(q *link.Sign) { q.User = "root" },
		"another host":         func(q *link.Sign) { q.HostKey = other.PublicKey().Marshal() },
		"no host":              func(q *link.Sign) { q.HostKey = nil },
		"another session":      func(q *link.Sign) { q.Session = make([]byte, 32) },
		"a text for a session": func(q *link.Sign) { q.Session = []byte("SSHSIG") },
		"no proof":             func(q *link.Sign) { q.Proof = nil },
		"another key":          func(q *link.Sign) { q.Key = other.PublicKey().Marshal() },
		"another algorithm":    func(q *link.Sign) { q.Algorithm = "x" },
	} {
		if len(ask(change)) > 0 {
			t.Errorf("%s is signed", about)
		}
		if len(ask(func(*link.Sign) {})) == 0 {
			t.Errorf("control of %s", about)
		}
	}
}
