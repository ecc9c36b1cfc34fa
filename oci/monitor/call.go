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

// What a keeper is asked over its socket: one JSON object, one answer.
const (
	verbStart  = "start"  // the container's process is about to execute: hold it from now on
	verbFinish = "finish" // the container is about to be removed: answer when all is written, and end
)

type request struct {
	Verb string `json:"verb"`
}

type answer struct {
	Failure string `json:"failure,omitempty"`
}

// errNobody means that no keeper listens.
var errNobody = errors.New("no keeper holds the container")

// ask asks the keeper of the container in directory. It waits until the keeper
// has answered, and after finish until it is gone.
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
		return fmt.Errorf("cannot ask the keeper: %w", err)
	}
	var got answer
	if err := json.NewDecoder(connection).Decode(&got); err != nil {
		return fmt.Errorf("the keeper does not answer: %w", err)
	}
	if got.Failure != "" {
		return errors.New(got.Failure)
	}
	if verb == verbFinish {
		_, err = io.Copy(io.Discard, connection)
	}
	return err
}

// reachPause is between two tries to reach a keeper that does not listen yet.
const reachPause = 10 * time.Millisecond

// reach waits for a keeper that another call of clove-oci is only starting: it
// has the lock before it listens. Where nobody has it there is nothing to wait for.
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

// short names the socket in a way that fits into sockaddr_un: engines' own
// directories and ids of 64 letters do not.
func short(directory string) (path string, close func() error, err error) {
	fd, err := unix.Open(directory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, &os.PathError{Op: "open", Path: directory, Err: err}
	}
	path = filepath.Join("/proc/self/fd", strconv.Itoa(fd), socketName)
	return path, func() error { return unix.Close(fd) }, nil
}

// call is one request that waits for its answer.
type call struct {
	verb   string
	answer chan error
	told   chan struct{} // closed when the caller has its answer
}

// askPatience is how long a caller may take to say what it wants.
const askPatience = 10 * time.Second

// listen takes requests until the listener is closed. The directory is the
// keeper's by its lock, so a socket that is there was left by a dead one.
func listen(directory string, calls chan<- call) (*net.UnixListener, error) {
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
	listener.SetUnlinkOnClose(false) // it goes with the directory
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

// serve keeps the connection of who waits for the keeper's end: the end of the
// process closes it.
func serve(connection net.Conn, calls chan<- call) {
	var asked request
	err := connection.SetReadDeadline(time.Now().Add(askPatience))
	if err == nil {
		err = json.NewDecoder(connection).Decode(&asked)
	}
	if err != nil {
		connection.Close()
		return
	}
	c := call{verb: asked.Verb, answer: make(chan error, 1), told: make(chan struct{})}
	calls <- c
	var told answer
	if err := <-c.answer; err != nil {
		told.Failure = err.Error()
	}
	_ = json.NewEncoder(connection).Encode(told) // a caller that left wants no answer
	close(c.told)
	if asked.Verb != verbFinish {
		connection.Close()
	}
}
