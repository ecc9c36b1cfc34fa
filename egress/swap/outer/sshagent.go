package outer

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/internal/descriptor"
)

const (
	sshBytes     = 16 << 10 // of a message: a bind has a key, a hash and a signature
	sshConnsMost = 32
	sshSignTime  = 3 * time.Minute // of the inner side, which may wait for cloved and for people
	sshKeysTime  = 10 * time.Second
)

// signer is the run's ssh agent. It has no private key: what is to be signed goes to the inner side as typed values.
type signer struct {
	*Server
	known chan struct{} // closed with the first keys

	mu      sync.Mutex        // guards the following
	keys    map[string][]byte // public, by their secrets
	last    uint64
	waiting map[uint64]chan []byte
}

// accept serves connections to a listener until the server ends. It takes the listener over.
func (s *signer) accept(file *os.File, ids link.IDs) error {
	listener, err := net.FileListener(file)
	file.Close()
	if err != nil {
		return err
	}
	places := make(chan struct{}, sshConnsMost)
	go func() {
		for {
			places <- struct{}{}
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { conn.Close(); <-places }()
				if unixConn, ok := conn.(*net.UnixConn); ok && isOf(unixConn, ids) {
					s.serve(conn)
				}
			}()
		}
	}()
	return nil
}

// isOf reports whether a user of the sandbox has connected: the directory of the socket is not closed to other users of the host.
func isOf(conn *net.UnixConn, ids link.IDs) bool {
	var peer *unix.Ucred
	err := descriptor.Use(conn, func(fd int) (err error) {
		peer, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	return err == nil && peer.Uid >= ids.First && peer.Uid-ids.First < ids.Count
}

// serve answers the messages of one connection, one after the other.
func (s *signer) serve(conn net.Conn) {
	var bound session
	for {
		m, err := readMessage(conn)
		if err != nil {
			return
		}
		reply, refused := s.answer(&bound, m)
		if refused != nil {
			if refused.Detail != "" { // the inner side reports its own
				_ = s.control.Send(link.Report{Denied: refused})
			}
			reply = []byte{sshFailure}
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func readMessage(from io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > sshBytes {
		return nil, errMessage
	}
	m := make([]byte, n)
	_, err := io.ReadFull(from, m)
	return m, err
}

// answer is the reply to a message of at least one byte.
func (s *signer) answer(bound *session, m []byte) ([]byte, *link.Denied) {
	select {
	case <-s.known:
	case <-time.After(sshKeysTime): // the values have not come
	}
	switch m[0] {
	case sshList:
		return s.list(), nil
	case sshExtension:
		return []byte{sshSuccess}, bound.bind(m[1:])
	case sshSign:
		q, refused := bound.request(m[1:])
		if refused != nil {
			return nil, refused
		}
		if signature := s.sign(q); len(signature) > 0 {
			return appendString([]byte{sshSignature}, signature), nil
		}
		return nil, &link.Denied{}
	}
	return nil, refuseSSH(sshOperation(m[0]), "an ssh agent of clove's lists its keys and signs authentications, and does nothing else")
}

// list are the public keys, with the names of their secrets.
func (s *signer) list() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.keys {
		names = append(names, name)
	}
	slices.Sort(names)
	reply := binary.BigEndian.AppendUint32([]byte{sshKeys}, uint32(len(names)))
	for _, name := range names {
		reply = appendString(appendString(reply, s.keys[name]), []byte(name))
	}
	return reply
}

// learn takes public keys of the inner side.
func (s *signer) learn(keys map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys == nil {
		close(s.known)
	}
	s.keys = keys
}

// sign has the inner side sign. Empty: it refuses.
func (s *signer) sign(q link.Sign) []byte {
	s.places <- struct{}{}
	defer func() { <-s.places }()
	answer := make(chan []byte, 1)
	s.mu.Lock()
	s.last++
	q.Number = s.last
	s.waiting[q.Number] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, q.Number)
	}()
	if err := s.inner.Send(link.ToInner{Sign: &q}); err != nil {
		return nil
	}
	timer := time.NewTimer(sshSignTime)
	defer timer.Stop()
	select {
	case signature := <-answer:
		return signature
	case <-timer.C:
		return nil
	}
}

// signed takes an answer of the inner side.
func (s *signer) signed(m link.Signed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to := s.waiting[m.Number]; to != nil {
		delete(s.waiting, m.Number)
		to <- m.Signature // it has room for one
	}
}
