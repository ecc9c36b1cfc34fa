package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// The benchmark's world. A name leads to public addresses only, so these are
// such; the two namespaces have no way out to their real owners.
const (
	hostAddress   = "93.184.216.1"
	serverAddress = "93.184.216.34"
	nameServer    = "93.184.216.53"
	siteName      = "site.bench.example"
	freshName     = "new.bench.example"

	portByAddress = "7000"
	portByName    = "443"
	portDenied    = "9"
)

// world has two network namespaces: a host (here), in which clove, the proxies and the clients
// run, with an /etc/hosts and resolv.conf of its own, and the servers behind a veth pair.
type world struct {
	site
	there *nsthread.Thread
}

// newWorld makes both namespaces and starts the servers. After an error nothing is
// left.
func newWorld(b *bench) (w *world, err error) {
	w = &world{site: site{bench: b, dir: filepath.Join(b.scratch, "network")}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cannot make the benchmark's network: %w", err), w.close())
		}
	}()
	if err := os.Mkdir(w.dir, 0o711); err != nil {
		return w, err
	}
	// First: plug needs the namespace to put one end of the cable there.
	if w.there, err = w.isolate(unix.CLONE_NEWNET); err != nil {
		return w, err
	}
	if w.here, err = w.isolate(unix.CLONE_NEWNET | unix.CLONE_NEWNS); err != nil {
		return w, err
	}
	if err := w.plug(); err != nil {
		return w, err
	}
	if err := w.ownFiles(); err != nil {
		return w, err
	}
	return w, w.open()
}

// plug connects the two namespaces by a veth pair and gives the ends their addresses.
func (w *world) plug() error {
	var there string
	if err := w.there.Do(func() error {
		there = fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), unix.Gettid())
		return nil
	}); err != nil {
		return err
	}
	if err := batch(w.here, "link set lo up\nlink add up0 type veth peer name down0 netns "+there+
		"\naddr add "+hostAddress+"/24 dev up0\nlink set up0 up\n"); err != nil {
		return err
	}
	beyond := "link set lo up\nlink set down0 up\naddr add " + serverAddress + "/24 dev down0\naddr add " + nameServer + "/24 dev down0\n"
	prefix := serverAddress[:strings.LastIndexByte(serverAddress, '.')+1]
	for i := range freshAddresses {
		beyond += fmt.Sprintf("addr add %s%d/24 dev down0\n", prefix, freshAddresses+i)
	}
	return batch(w.there, beyond)
}

// batch runs several commands of ip(8) in one process: a process for each of the 64
// addresses would take long.
func batch(thread *nsthread.Thread, commands string) error {
	var out bytes.Buffer
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(commands), &out, &out
	if err := thread.Do(cmd.Start); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, &out)
	}
	return nil
}

// ownFiles gives the proxies an /etc/hosts, which has the site's address, and a
// resolv.conf with the name server. They are bound over the host's in the thread's own
// mount namespace.
func (w *world) ownFiles() error {
	for name, text := range map[string]string{
		"hosts":       "127.0.0.1 localhost\n" + serverAddress + " " + siteName + "\n",
		"resolv.conf": "nameserver " + nameServer + "\n",
	} {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		if err := w.here.Do(func() error { return unix.Mount(path, "/etc/"+name, "", unix.MS_BIND, "") }); err != nil {
			return fmt.Errorf("cannot give the proxies an %s: %w", name, err)
		}
	}
	return nil
}

// open opens the servers' sockets in the other namespace. The goroutines that use them
// may run on any thread: a socket keeps its namespace.
func (w *world) open() error {
	for _, port := range []string{portByAddress, portByName} {
		var listener net.Listener
		err := w.there.Do(func() (err error) { listener, err = net.Listen("tcp4", ":"+port); return err })
		if err != nil {
			return err
		}
		w.started.Add("a server", listener.Close)
		go serveBytes(listener)
	}
	var names net.PacketConn
	err := w.there.Do(func() (err error) {
		names, err = (&net.ListenConfig{}).ListenPacket(context.Background(), "udp4", nameServer+":53")
		return err
	})
	if err != nil {
		return err
	}
	w.started.Add("the name server", names.Close)
	go serveNames(names)
	return nil
}

// opRead is the one byte that the server answers with, whatever was sent first. Then it
// expects a number and sends that many bytes.
const opRead = 1

func requestFor(size int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(size)) }

// serveBytes answers until the listener is closed.
func serveBytes(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			answerBytes(conn)
		}()
	}
}

// sentAtOnce is how much a server that sends a file usually writes at once.
const sentAtOnce = 256 << 10

// answerBytes reads the first message in one piece: a TLS hello, or one byte.
func answerBytes(conn io.ReadWriter) {
	first := make([]byte, 16<<10)
	if _, err := conn.Read(first); err != nil {
		return
	}
	if _, err := conn.Write([]byte{opRead}); err != nil {
		return
	}
	var request [8]byte
	if _, err := io.ReadFull(conn, request[:]); err != nil {
		return
	}
	zeros := make([]byte, sentAtOnce)
	for left := int64(binary.BigEndian.Uint64(request[:])); left > 0; {
		n, err := conn.Write(zeros[:min(left, sentAtOnce)])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}
