package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/store"
)

// The posts.
const (
	postClove  = "clove"
	postMany   = "clove, 10 000 mailboxes"
	postStore  = "the store's Go API"
	postSQLite = "SQLite"
	postRedis  = "Redis"
	postNATS   = "NATS JetStream"
)

var mailKinds = []kind[*mails, *mailPeer]{
	{postClove, "each agent's socket and cloved; also checks the caller and its grant, and writes a hash-chained log", (*mails).openClove},
	{postMany, "the same beside 10 000 mailboxes of runs that have ended, with a message in each", (*mails).openMany},
	{postStore, "the message, its box and the entry of the log by the Go API, without an agent, a caller or cloved", (*mails).openStore},
	{postSQLite, "a file in a folder of the agent's (-v), WAL, synchronous=FULL, from Python; 64 callers in one agent take turns with a lock", (*mails).openSQLite},
	{postRedis, "a server outside, its socket in a folder of the agents' (-v), appendfsync always; a script for each send", (*mails).openRedis},
	{postNATS, "a server outside, sync_interval always; its clients, 64 connections of one process, are outside too, by loopback; the entry of the log is in the message", (*mails).openNATS},
}

// mails has a cloved with agents, and one with mailboxes.
type mails struct {
	site
	folder string // what the sandboxes share with the host
	agents []mailClient
	bytes  map[bool]float64 // that a mailbox takes, by whether it is empty
}

// open starts everything.
func (w *mails) open(t *table) (peers []*mailPeer, err error) {
	if err := errors.Join(os.Mkdir(w.folder, 0o777), os.Chmod(w.folder, 0o777)); err != nil { // an agent's id is another one on the host
		return nil, err
	}
	few := w.newCloved("mail-few")
	if err := w.serve(few); err != nil {
		return nil, err
	}
	for i := range mailers {
		a, err := w.mailerOf(few, boxName(i))
		if err != nil {
			return nil, err
		}
		w.agents = append(w.agents, a)
	}
	if peers = openAll(w, t, mailKinds); w.bytes != nil {
		t.single(whatBox, "empty", unitBytes, w.bytes[true], "1024")
		t.single(whatBox, "with a message of 100 bytes", unitBytes, w.bytes[false], "1024")
	}
	return peers, nil
}

func boxName(number int) string { return fmt.Sprintf("mail-%d", number) }

// mailerOf starts a sandbox with this binary as its agent.
func (w *mails) mailerOf(d *cloved, name string) (*remote, error) {
	const inside, folder = "/client", "/shared"
	return w.remote(w.clove, "--root", d.state, "--run-dir", d.run, "run", "--rm", "--name", name,
		"-v", w.self+":"+inside+":ro", "-v", w.folder+":"+folder, "--grant", "send:mail-*", "--grant", checked, "--budget", "messages=1000000g", "--at-end", "refuse",
		"--", inside, roleMailer, folder, name, boxName(1), "-")
}

func (w *mails) openClove() (*mailPeer, error) {
	return &mailPeer{name: postClove, post: postClove, clients: w.agents}, nil
}

// openMany starts a cloved with the runs and mailboxes of a past, and measures how large these are.
func (w *mails) openMany() (*mailPeer, error) {
	many := w.newCloved("mail-many")
	if err := many.remember(records); err != nil {
		return nil, err
	}
	w.bytes = map[bool]float64{}
	for _, empty := range []bool{true, false} { // the second file is the one that cloved gets
		size, err := many.receive(empty)
		if err != nil {
			return nil, err
		}
		w.bytes[empty] = size
	}
	if err := w.serve(many); err != nil {
		return nil, err
	}
	client, err := w.mailerOf(many, boxName(0))
	return &mailPeer{name: postMany, post: postClove, clients: []mailClient{client}, alone: true}, err
}

// boxesAtOnce are made in one transaction: about as many as share a commit where many send.
const boxesAtOnce = 64

// receive gives each run of the past a mailbox in a new kernel.db, and returns what one takes in bytes.
func (d *cloved) receive(empty bool) (one float64, err error) {
	s, err := store.Open(filepath.Join(d.state, "clove.db"), time.Minute)
	if err != nil {
		return 0, err
	}
	runs, err := s.List()
	if err = errors.Join(err, s.Close()); err != nil {
		return 0, err
	}
	path := filepath.Join(d.state, "kernel.db")
	if err := os.RemoveAll(path); err != nil {
		return 0, err
	}
	file, err := store.OpenKernel(path, time.Minute, kernel.Tables()...)
	if err != nil {
		return 0, err
	}
	before, err := usedBytes(file, path+".before")
	for at := 0; at < len(runs) && err == nil; at += boxesAtOnce {
		err = file.Update(func(tx *store.KernelTx) error { return receiveAll(tx, runs[at:min(len(runs), at+boxesAtOnce)], empty) })
	}
	after, uerr := usedBytes(file, path+".after")
	return float64(after-before) / float64(len(runs)), errors.Join(err, uerr, file.Close())
}

func receiveAll(tx *store.KernelTx, runs []agent.Run, empty bool) error {
	for _, run := range runs {
		box, m := lease.RunBox(run.Owner.UID, run.Spec.ID), newMessage(boxName(0))
		err := lease.Put(tx, box, m)
		if err == nil && empty {
			_, err = lease.Take(tx, box, m.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newMessage is a message as mail.send stores it.
func newMessage(to string) *lease.Message {
	call := string(agent.NewID())
	return &lease.Message{Mail: api.Mail{From: agent.NewID(), Sender: to, To: to, Sent: time.Now().UTC(), Trace: call, Causation: call, Body: []byte(mailBody)}}
}

// usedBytes is the size of a copy of the file, which has the part of it that is used. It removes the copy.
func usedBytes(file *store.Kernel, to string) (int64, error) {
	if err := file.Backup(to); err != nil {
		return 0, err
	}
	info, err := os.Stat(to)
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Remove(to)
}

// storeMail sends by the Go API of the store.
type storeMail struct{ file *store.Kernel }

func (w *mails) openStore() (*mailPeer, error) {
	file, err := store.OpenKernel(filepath.Join(w.scratch, "mail-store.db"), time.Minute, kernel.Tables()...)
	if err != nil {
		return nil, err
	}
	w.started.Add("the store", file.Close)
	return &mailPeer{name: postStore, post: postStore, clients: []mailClient{storeMail{file}}, deaf: true}, nil
}

func (s storeMail) run(order any) (r report, err error) {
	o := order.(mailOrder)
	if o.Do == doClear {
		return r, s.file.Update(func(tx *store.KernelTx) (err error) {
			for i := range mailers {
				err = errors.Join(err, lease.Forget(tx, storeBox(i)))
			}
			return errors.Join(err, store.AuditQueue.DeleteUpTo(tx, 1<<62))
		})
	}
	r.Values, err = atOnce(o.Callers, func(i int) (took []float64, err error) {
		for range o.Turns {
			began := time.Now()
			err := s.file.Update(func(tx *store.KernelTx) error {
				if err := lease.Put(tx, storeBox(i), newMessage(boxName(i))); err != nil {
					return err
				}
				_, err := store.AuditQueue.Add(tx, []byte(auditEntry))
				return err
			})
			if err != nil {
				return nil, err
			}
			took = append(took, millis(time.Since(began)))
		}
		return took, nil
	})
	return r, err
}

func storeBox(number int) lease.Of { return lease.NameBox(0, "", boxName(number)) }

func (w *mails) openSQLite() (*mailPeer, error) {
	return w.proven(&mailPeer{name: postSQLite, post: postSQLite, clients: w.agents[:1], deaf: true})
}

// proven has a peer work once, so that one that cannot is left out.
func (w *mails) proven(p *mailPeer) (*mailPeer, error) {
	_, _, err := p.timed(p.clients, mailOrder{Callers: 1, Turns: 1})
	return p, err
}

func (w *mails) openRedis() (*mailPeer, error) {
	if err := w.serveRedis(w.folder, filepath.Join(w.scratch, "mail-redis")); err != nil {
		return nil, err
	}
	return w.proven(&mailPeer{name: postRedis, post: postRedis, clients: w.agents})
}

// natsVersion is of the server that is built and measured.
const natsVersion = "v2.14.5"

func (w *mails) openNATS() (*mailPeer, error) {
	server := filepath.Join(w.cache, "nats-"+natsVersion, "nats-server")
	if _, err := os.Stat(server); err != nil {
		install := exec.Command("go", "install", "github.com/nats-io/nats-server/v2@"+natsVersion)
		install.Env = append(os.Environ(), "GOFLAGS=", "GOBIN="+filepath.Dir(server))
		if out, err := install.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build the NATS server: %w: %s", err, lastLine(out))
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(w.scratch, "nats.conf")
	text := fmt.Sprintf("listen: %q\njetstream: {store_dir: %q, sync_interval: always}\n", address, filepath.Join(w.scratch, "nats"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	p, err := w.start(exec.Command(server, "-c", config))
	if err != nil {
		return nil, err
	}
	if err := p.await(w.here, address); err != nil {
		return nil, err
	}
	peer := &mailPeer{name: postNATS, post: postNATS}
	for i := range 2 {
		client, err := w.remote(w.self, roleMailer, w.folder, boxName(i), boxName(1), address)
		if err != nil {
			return nil, err
		}
		peer.clients = append(peer.clients, client)
	}
	return w.proven(peer)
}

// freeAddress is one of the loopback on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
