package monitor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The requests to a monitor, over its socket: one JSON object, one answer.
const (
	verbStart  = "start"  // the container's process is about to execute: the deadline begins
	verbFinish = "finish" // the container is about to be removed: answer when all is written, and end
)

// request is one line of JSON. A connection carries one request.
type request struct {
	Verb string `json:"verb"`
}

// reply has no failure if the request was carried out.
type reply struct {
	Failure string `json:"failure,omitempty"`
}

// errNobody means that no monitor listens on the socket.
var errNobody = errors.New("the container has no monitor")

// ask sends verb to the monitor of the container in directory and waits for the
// answer, after finish also for the monitor's end.
func ask(directory, verb string, patience time.Duration) error {
	until := time.Now().Add(patience)
	connection, err := reach(directory, until)
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(until); err != nil {
		return err
	}
	if err := json.NewEncoder(connection).Encode(request{verb}); err != nil {
		return fmt.Errorf("cannot ask the monitor: %w", err)
	}
	var got reply
	if err := json.NewDecoder(connection).Decode(&got); err != nil {
		return fmt.Errorf("the monitor does not answer: %w", err)
	}
	if got.Failure != "" {
		return errors.New(got.Failure)
	}
	// The monitor keeps this connection open until its process ends, so the end of file is
	// the end of the process.
	if verb == verbFinish {
		_, err = io.Copy(io.Discard, connection)
	}
	return err
}

// reachPause is the time between two attempts to connect to a monitor that does not listen
// yet.
const reachPause = 10 * time.Millisecond

// reach waits for a monitor that another call of clove-oci is starting: it has the
// lock before it listens. If the lock is free, there is nothing to wait for.
func reach(directory string, until time.Time) (net.Conn, error) {
	for {
		connection, err := dial(directory)
		if !errors.Is(err, errNobody) || time.Now().After(until) {
			return connection, err
		}
		held, failure := lockAgain(directory)
		if held != nil {
			held.Close()
		}
		if held != nil || failure != nil {
			return nil, errors.Join(err, failure)
		}
		time.Sleep(reachPause)
	}
}

// dial connects to the monitor's socket. A refused connection and a missing file both mean
// errNobody: a killed monitor leaves the file.
func dial(directory string) (net.Conn, error) {
	path, close, err := short(directory)
	if err != nil {
		return nil, err
	}
	defer close()
	connection, err := net.Dial("unix", path)
	if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.ENOENT) {
		return nil, errNobody
	}
	return connection, err
}

// short is a path of the socket that fits into the 108 bytes of sockaddr_un, unix(7):
// an engine's directory with an id of 64 letters does not.
func short(directory string) (path string, close func() error, err error) {
	fd, err := unix.Open(directory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: directory, Err: err}
	}
	path = filepath.Join("/proc/self/fd", strconv.Itoa(fd), socketName)
	return path, func() error { return unix.Close(fd) }, nil
}

// pendingRequest is one request that waits for its answer.
type pendingRequest struct {
	verb     string
	answer   chan error
	answered chan struct{} // closed when the caller has its answer
}

// askPatience bounds how long a connected caller may take to send its request, so that one
// that hangs does not hold a goroutine for ever.
const askPatience = 10 * time.Second

// listen accepts requests until the listener is closed. A socket file that exists was left
// by a killed monitor, because this one holds the lock.
func listen(directory string, calls chan<- pendingRequest) (*net.UnixListener, error) {
	path, close, err := short(directory)
	if err != nil {
		return nil, err
	}
	defer close()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the file is removed with the directory
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection, calls)
		}
	}()
	return listener, nil
}

// serve reads one request. The connection of a caller that waits for the monitor's
// end stays open: the end of the process closes it.
func serve(connection net.Conn, calls chan<- pendingRequest) {
	var asked request
	err := connection.SetReadDeadline(time.Now().Add(askPatience))
	if err == nil {
		err = json.NewDecoder(connection).Decode(&asked)
	}
	if err != nil {
		connection.Close()
		return
	}
	c := pendingRequest{verb: asked.Verb, answer: make(chan error, 1), answered: make(chan struct{})}
	calls <- c
	var reply reply
	if err := <-c.answer; err != nil {
		reply.Failure = err.Error()
	}
	_ = json.NewEncoder(connection).Encode(reply) // a caller that left wants no answer
	close(c.answered)
	if asked.Verb != verbFinish {
		connection.Close()
	}
}
