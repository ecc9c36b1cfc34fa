//go:build root

package integration

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"clove.run/clove/api"
	"clove.run/clove/internal/testhost"
)

// gitHosts are two hosts that serve git repositories over ssh to the user of one key: api.example.com:2222, and
// db.example.com:2222, whose own key is another.
type gitHosts struct {
	root    string // of the repositories; there is repo.git
	private string // the file of the user's key
	known   string // the file of the key of api.example.com
	mu      sync.Mutex
	users   []string // guarded by mu: USER@HOST of each login
}

func newSSHKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func serveGit(t *testing.T, n *internet) *gitHosts {
	t.Helper()
	dir := t.TempDir()
	h := &gitHosts{root: dir, private: filepath.Join(dir, "key"), known: filepath.Join(dir, "known_hosts")}
	user, private := newSSHKey(t)
	site, _ := newSSHKey(t)
	other, _ := newSSHKey(t)
	line := "[api.example.com]:2222 " + string(ssh.MarshalAuthorizedKey(site.PublicKey()))
	for name, text := range map[string][]byte{h.private: private, h.known: []byte(line)} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", "--bare", "-b", "main", filepath.Join(dir, "repo.git")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for address, key := range map[string]ssh.Signer{siteAddress: site, otherAddress: other} {
		config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if string(k.Marshal()) != string(user.PublicKey().Marshal()) {
				return nil, fmt.Errorf("no such key")
			}
			return nil, nil
		}}
		config.AddHostKey(key)
		if err := n.serveTCP(n.there, address+":2222", func(conn net.Conn) { h.session(conn, config, address) }); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// session serves one connection: git's two programs, each of a repository below the root.
func (h *gitHosts) session(conn net.Conn, config *ssh.ServerConfig, address string) {
	c, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	h.mu.Lock()
	h.users = append(h.users, c.User()+"@"+address)
	h.mu.Unlock()
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			var command struct{ Text string }
			if r.Type != "exec" || ssh.Unmarshal(r.Payload, &command) != nil {
				_ = r.Reply(r.Type == "env", nil)
				continue
			}
			_ = r.Reply(true, nil)
			program, path, _ := strings.Cut(command.Text, " ")
			git := exec.Command(program, filepath.Join(h.root, filepath.Base(strings.Trim(path, "'"))))
			git.Stdin, git.Stdout, git.Stderr = nil, channel, channel.Stderr()
			in, err := git.StdinPipe()
			status := struct{ Code uint32 }{1}
			if err == nil && (program == "git-receive-pack" || program == "git-upload-pack") && git.Start() == nil {
				go func() { _, _ = io.Copy(in, channel); in.Close() }()
				if git.Wait() == nil {
					status.Code = 0
				}
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
			channel.Close()
		}
	}
}

func (h *gitHosts) loggedIn() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.users...)
}

// keepsKey sets the ssh key of root's.
func (h *gitHosts) keepsKey(d *cloved, flags ...string) {
	d.t.Helper()
	d.ok(append(append([]string{"secret", "set", "--ssh", "--host", "api.example.com:2222", "--known-hosts", h.known, "--from-file", h.private}, flags...), "KEY")...)
}

const (
	sshURL  = "ssh://git@api.example.com:2222/repo.git"
	pushSSH = `cd && git init -q -b main r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && git push -q ` + sshURL + ` main && echo pushed; `
)

// git pushes and clones over ssh with a key that stays outside; the use is counted. The control is the same without the key.
func TestGitPushesWithAKeyThatItNeverHas(t *testing.T) {
	testhost.Tool(t, "ssh")
	d, n := askingHost(t)
	h := serveGit(t, n)
	h.keepsKey(d)
	r := d.clove("run", "--name", "pushes", "--allow", "api.example.com:2222", "--secret", "KEY:ssh", "--", "sh", "-c",
		pushSSH+`cd && git clone -q `+sshURL+` c && git -C c log --format=%s; ssh-add -l; ls /run/clove; env | grep -c CA_BUNDLE`)
	if r.code != 1 || !strings.Contains(r.stdout, "pushed\nfirst\n256 SHA256:") || !strings.Contains(r.stdout, "KEY (ED25519)\n") || !strings.HasSuffix(r.stdout, "ssh.sock\nssh_known_hosts\n0\n") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	if out, err := exec.Command("git", "-C", filepath.Join(h.root, "repo.git"), "log", "--format=%s", "main").CombinedOutput(); string(out) != "first\n" {
		t.Errorf("%v: %s", err, out)
	}
	if users := h.loggedIn(); fmt.Sprint(users) != fmt.Sprint([]string{"git@" + siteAddress, "git@" + siteAddress}) {
		t.Errorf("%q", users)
	}
	if record := d.inspect("pushes").Record; len(record.Denials) != 0 {
		t.Errorf("%+v", record.Denials)
	}
	var uses []api.SecretUse
	if err := json.Unmarshal([]byte(d.ok("secret", "uses", "--json")), &uses); err != nil || len(uses) != 2 || uses[0].Host != "api.example.com:2222" || uses[0].Path != "git" {
		t.Errorf("%+v, %v", uses, err)
	}
	if out := d.ok("secret", "uses"); !strings.Contains(out, "ssh://git@api.example.com:2222") {
		t.Errorf("%s", out)
	}
	if out := d.ok("audit", "tail"); !strings.Contains(out, "secret.use") || !strings.Contains(out, "api.example.com:2222") {
		t.Errorf("%s", out)
	}
	if r := d.clove("run", "--allow", "api.example.com:2222", "--", "sh", "-c", "export GIT_SSH_COMMAND='ssh -o StrictHostKeyChecking=no'; "+pushSSH); strings.Contains(r.stdout, "pushed") || !strings.Contains(r.stderr, "Permission denied") {
		t.Errorf("control: %s%s", r.stdout, r.stderr)
	}
}

// Another user, another host, a text that is no authentication and a use beyond the budget are refused, and are in the record and in why. The
// control is the first push, and a key in the sandbox, with which all of them work.
func TestWhatAnSSHKeyIsNotFor(t *testing.T) {
	testhost.Tool(t, "ssh")
	d, n := askingHost(t)
	h := serveGit(t, n)
	h.keepsKey(d, "--uses", "1")
	const refused = `S="ssh -o StrictHostKeyChecking=no -o BatchMode=yes -p 2222"
		$S root@api.example.com git-upload-pack repo.git </dev/null; $S git@db.example.com git-upload-pack repo.git </dev/null
		ssh-add -L >pub; echo text >text; ssh-keygen -q -Y sign -f pub -n git text && echo signed
		ssh-add -D; ssh-add -x </dev/null; `
	r := d.clove("run", "--name", "refused", "--allow", "*.example.com:2222", "--secret", "KEY:ssh", "--", "sh", "-c", "("+pushSSH+")\n"+refused+"cd ~/r && git push -q "+sshURL+" main:other && echo again")
	if users := h.loggedIn(); fmt.Sprint(users) != fmt.Sprint([]string{"git@" + siteAddress}) || !strings.Contains(r.stdout, "pushed") || strings.Contains(r.stdout, "signed") || strings.Contains(r.stdout, "again") {
		t.Errorf("%q: %s%s", users, r.stdout, r.stderr)
	}
	why := d.ok("why", "refused")
	record := fmt.Sprint(d.inspect("refused").Record.Denials)
	for target, rule := range map[string]string{
		"ssh://root@api.example.com:2222": "KEY: name", "ssh://git@SHA256:": "KEY: name", "ssh agent: sign": "form", "ssh agent: remove": "form", "ssh://git@api.example.com:2222": "KEY: use",
	} {
		if !strings.Contains(record, target) || !strings.Contains(record, rule) || !strings.Contains(why, target) || !strings.Contains(r.stderr, target) {
			t.Errorf("%s (%s) is not in\n%s\n%s\n%s", target, rule, record, why, r.stderr)
		}
	}
	private, err := os.ReadFile(h.private)
	if err != nil {
		t.Fatal(err)
	}
	control := "umask 077; cat >k; eval $(ssh-agent) >/dev/null; ssh-add -q k; " + refused
	if r := d.cloveWith(string(private), "run", "--allow", "*.example.com:2222", "--", "sh", "-c", control); !strings.Contains(r.stdout, "signed") {
		t.Errorf("control: %s%s", r.stdout, r.stderr)
	}
	if users := fmt.Sprint(h.loggedIn()); !strings.Contains(users, "root@"+siteAddress) || !strings.Contains(users, "git@"+otherAddress) {
		t.Errorf("control: %s", users)
	}
}

// While a run uses an ssh key, the key is in one process of the run's alone. The control is that one.
func TestAnSSHKeyIsInOneProcess(t *testing.T) {
	testhost.Tool(t, "ssh")
	d, n := askingHost(t)
	h := serveGit(t, n)
	h.keepsKey(d)
	d.detach("pushes", pushSSH+"touch /tmp/done; sleep 1000", "--allow", "api.example.com:2222", "--secret", "KEY:ssh")
	until(t, "it has pushed", func() bool { return len(h.loggedIn()) == 1 })
	private, err := os.ReadFile(h.private)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Split(string(private), "\n")[3] // of the secret part
	with := map[string]int{}
	for _, pid := range below(t, d.inspect("pushes").Lease.SupervisorPID) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		name := strings.TrimSpace(string(comm))
		if err != nil || name == "git" || name == "ssh" {
			continue // it has ended
		}
		if inMemory(t, pid, line) {
			name += " with"
		}
		with[name]++
	}
	if with["clove-swap with"] != 1 || with["clove-swap"] != 1 || with["clove with"]+with["sh with"]+with["clove-gate with"] != 0 {
		t.Errorf("%v", with)
	}
	for _, dir := range []string{d.state, d.run} {
		if found := filesWith(t, dir, line); len(found) > 0 {
			t.Errorf("it is in %v", found)
		}
	}
	d.ok("stop", "pushes")
}

// A secret that may be read is in a file in memory, which the agent alone reads, and the run says so. The control is one that may not.
func TestASecretThatAnAgentReads(t *testing.T) {
	d, _, _ := secretHost(t)
	d.keeps("TOKEN")
	if r := d.cloveWith("first line\nsecond line\n", "secret", "set", "--plain", "CONFIG"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	r := d.clove("run", "--name", "reads", "--network", "none", "--secret", "CONFIG:plain", "--", "sh", "-c",
		"cat /run/secrets/CONFIG; stat -c '%a %U' /run/secrets/CONFIG; stat -f -c %T /run/secrets")
	if r.code != 0 || r.stdout != "first line\nsecond line\n400 agent\ntmpfs\n" || !strings.Contains(r.stderr, "the agent can read the secrets CONFIG") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	mounts := d.ok("run", "--network", "none", "--secret", "CONFIG:plain", "--", "grep", "/run/secrets", "/proc/mounts")
	var major, minor int
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	if _, err := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err != nil || strings.Contains(mounts, "noswap") != (major > 6 || major == 6 && minor >= 4) {
		t.Errorf("%s, %v, %s", release, err, mounts)
	}
	if record := d.inspect("reads").Record; fmt.Sprint(record.ReadableSecrets) != "[CONFIG]" {
		t.Errorf("%+v", record)
	}
	for _, line := range []string{"why reads", "show reads"} {
		if out := d.ok(strings.Fields(line)...); !strings.Contains(out, "CONFIG") || strings.Contains(out, "second line") {
			t.Errorf("%s: %s", line, out)
		}
	}
	if out := d.ok("secret", "uses", "CONFIG"); !strings.Contains(out, "file /run/secrets/CONFIG") {
		t.Errorf("%s", out)
	}
	if found := filesWith(t, d.state, "second line"); len(found) > 0 {
		t.Errorf("it is in %v", found)
	}
	if r := d.clove("run", "--network", "none", "--secret", "TOKEN:plain", "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "--plain") {
		t.Errorf("control: %d, %s", r.code, r.stderr)
	}
	if r := d.clove("run", "--allow", "api.example.com", "--secret", "CONFIG:env=X", "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "CONFIG:plain") {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
}
