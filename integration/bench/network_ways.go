package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"clove.run/clove/internal/nsthread"
)

// The peers of the network's table.
const (
	peerDirect    = "direct"
	peerClove     = "clove"
	peerTinyproxy = "tinyproxy"
	peerSquid     = "squid"
)

// proxies are the peers that clove is compared with.
var proxies = []string{peerTinyproxy, peerSquid}

// wayKind is one way to reach a server. open starts it, or returns why this machine
// does not have it.
type wayKind struct {
	name string
	does string
	open func(*world) (*way, error)
}

var wayKinds = []wayKind{
	{peerDirect, "the client connects itself, over a cable within the machine", openDirect},
	{peerClove, "the client runs in a sandbox; one rule by address, one by name", openClove},
	{peerTinyproxy, "CONNECT, the same rules as filters; looks names up itself, each time", openTinyproxy},
	{peerSquid, "CONNECT, the same rules as access lists; no cache, no log; remembers names", openSquid},
}

// way is an opened way with a client on it.
type way struct {
	name   string
	client *remote
	proxy  bool
	gated  bool
}

// can reports whether an order makes sense on this way: a proxy answers no DNS queries,
// and nothing denies a direct connection.
func (w *way) can(o order) bool {
	return (o.Questions == 0 || !w.proxy) && (!o.Denied || w.proxy || w.gated)
}

// program is a process that the benchmark started in its network.
type program struct {
	cmd    *exec.Cmd
	stderr tail
}

// start starts cmd in the benchmark's network and keeps it for close.
func (w *world) start(cmd *exec.Cmd) (*program, error) {
	cmd.Dir = w.scratch
	p, err := w.bench.program(w.here, cmd)
	if err == nil {
		w.programs = append(w.programs, p)
	}
	return p, err
}

// program starts cmd on a thread. It is killed with the thread, so nothing is left after a
// crash of the bench.
func (b *bench) program(on *nsthread.Thread, cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd}
	cmd.Stderr = &p.stderr
	if cmd.Env == nil {
		cmd.Env = b.environment()
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return p, on.Do(cmd.Start)
}

// end sends SIGTERM: clove then ends its agent and cleans up, and the proxies end at
// once.
func (p *program) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	hung := time.AfterFunc(endPatience, func() { p.cmd.Process.Kill() })
	defer hung.Stop()
	p.cmd.Wait() // its status is that of what ended it
	return nil
}

// endPatience bounds that; then comes SIGKILL.
const endPatience = 20 * time.Second

// remote is a client in another process, with its pipes.
type remote struct {
	program *program
	in      io.Writer
	out     *bufio.Reader
}

// client starts a client by argv, which ends with this binary's path. For clove, argv
// starts the sandbox around it.
func (w *world) client(proxy, server string, argv ...string) (*remote, error) {
	argv = append(argv, "client", proxy, server)
	return newRemote(exec.Command(argv[0], argv[1:]...), w.start)
}

// newRemote starts a client and returns when it waits for orders.
func newRemote(cmd *exec.Cmd, start func(*exec.Cmd) (*program, error)) (*remote, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r := &remote{in: in, out: bufio.NewReader(out)}
	if r.program, err = start(cmd); err != nil {
		return nil, err
	}
	if line, err := r.out.ReadString('\n'); err != nil || line != ready+"\n" {
		return nil, errors.Join(fmt.Errorf("the client does not begin: %q %w: %s", line, err, lastLine(r.program.stderr.text)), r.program.end())
	}
	return r, nil
}

// run sends an order and waits for the report.
func (r *remote) run(o order) ([]float64, error) {
	var said report
	if err := r.ask(o, &said); err != nil {
		return nil, err
	}
	return said.Values, r.failure(said.Error)
}

// ask sends an order and reads the report on it.
func (r *remote) ask(order, report any) error {
	if err := json.NewEncoder(r.in).Encode(order); err != nil {
		return err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the client is gone: %w: %s", err, lastLine(r.program.stderr.text))
	}
	return json.Unmarshal(line, report)
}

// failure is what a report says went wrong.
func (r *remote) failure(said string) error {
	if said == "" {
		return nil
	}
	return fmt.Errorf("%s (%s)", said, lastLine(r.program.stderr.text))
}

func openDirect(w *world) (*way, error) {
	c, err := w.client("", nameServer+":53", w.bench.self)
	return &way{name: peerDirect, client: c}, err
}

// gateName is the address at which an agent reaches its name server.
const gateName = "127.0.0.11:53"

// openClove runs the client in a sandbox, with a rule by address, one by name, and a
// rate that does not limit the benchmark.
func openClove(w *world) (*way, error) {
	const inside = "/client"
	c, err := w.client("", gateName, w.bench.clove, "run", "--rm", "--name", "bench-network", "-v", w.bench.self+":"+inside+":ro",
		"--allow", serverAddress+":"+portByAddress, "--allow", "*.bench.example:"+portByName, "--dns", nameServer,
		"--net-rate", "65535", "--", inside)
	return &way{name: peerClove, client: c, gated: true}, err
}

const (
	tinyproxyAddress = "127.0.0.1:8888"
	squidAddress     = "127.0.0.1:3128"
	nobody           = 65534
	startPatience    = 20 * time.Second
)

// openProxy starts a proxy from a configuration file, as an unprivileged user and in
// the foreground, so that it is this process's child.
func (w *world) openProxy(name, address, config string, argv func(file string) []string) (*way, error) {
	dir := filepath.Join(w.scratch, name)
	if err := nobodysFolder(dir, map[string]string{"conf": config, "filter": tinyproxyFilter}); err != nil {
		return nil, err
	}
	p, err := w.start(asNobody(argv(filepath.Join(dir, "conf"))...))
	if err != nil {
		return nil, err
	}
	if err := p.await(w.here, address); err != nil {
		return nil, err
	}
	c, err := w.client(address, nameServer+":53", w.bench.self)
	return &way{name: name, client: c, proxy: true}, err
}

// nobodysFolder makes a folder with files for a program that runs as an unprivileged user.
func nobodysFolder(dir string, files map[string]string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, nobody, nobody)); err != nil {
			return err
		}
	}
	return os.Chown(dir, nobody, nobody)
}

// asNobody is a command of that user.
func asNobody(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// await connects until p accepts: these servers do not report that they listen.
func (p *program) await(on *nsthread.Thread, address string) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := on.Do(func() error {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err == nil {
			return nil
		}
		if time.Since(began) > startPatience {
			return fmt.Errorf("%s does not listen: %w: %s", filepath.Base(p.cmd.Path), err, lastLine(p.stderr.text))
		}
	}
}

func openTinyproxy(w *world) (*way, error) {
	dir := filepath.Join(w.scratch, peerTinyproxy)
	return w.openProxy(peerTinyproxy, tinyproxyAddress, tinyproxyConfig(dir), func(file string) []string {
		return []string{"tinyproxy", "-d", "-c", file}
	})
}

func openSquid(w *world) (*way, error) {
	dir := filepath.Join(w.scratch, peerSquid)
	return w.openProxy(peerSquid, squidAddress, squidConfig(dir), func(file string) []string {
		return []string{"squid", "-N", "-f", file}
	})
}

// tinyproxyFilter are the rules in the form of tinyproxy.conf(5), which filters hosts
// and ports separately.
const tinyproxyFilter = `^93\.184\.216\.34$
\.bench\.example$
`

// tinyproxyConfig has the same rules as clove's run, and as little logging as possible.
func tinyproxyConfig(dir string) string {
	return `Port 8888
Listen 127.0.0.1
Timeout 60
MaxClients 256
Allow 127.0.0.1
ConnectPort ` + portByAddress + `
ConnectPort ` + portByName + `
Filter "` + dir + `/filter"
FilterDefaultDeny Yes
FilterExtended On
LogLevel Critical
LogFile "` + dir + `/log"
`
}

// squidConfig turns off what squid does besides: cache, logs, statistics of the
// network.
func squidConfig(dir string) string {
	return `http_port ` + squidAddress + `
acl CONNECT method CONNECT
acl name dstdomain .bench.example
acl address dst ` + serverAddress + `
acl by_name port ` + portByName + `
acl by_address port ` + portByAddress + `
http_access allow CONNECT name by_name
http_access allow CONNECT by_address address
http_access deny all
cache deny all
access_log none
cache_log ` + dir + `/log
coredump_dir ` + dir + `
pid_filename none
netdb_filename none
pinger_enable off
dns_nameservers ` + nameServer + `
shutdown_lifetime 0 seconds
`
}
