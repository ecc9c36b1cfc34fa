package main

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// mailSQLiteProgram sends messages in a SQLite file.
//
//go:embed mail_sqlite.py
var mailSQLiteProgram string

var errDeaf = errors.New("no receiver can wait for a message here")

// sqliteMail has a box for each caller.
type sqliteMail struct{ *sqlite }

func openMailSQLite(folder string) (sqliteMail, error) {
	s, err := startSQLite(mailSQLiteProgram, folder, mailBody, auditEntry)
	return sqliteMail{s}, err
}

func (s sqliteMail) send(callers, turns int) ([]float64, error) { return s.spend(callers, turns) }
func (s sqliteMail) clear() error                               { _, err := s.spend(1, 0); return err }
func (s sqliteMail) tell() error                                { return errDeaf }
func (s sqliteMail) hear() (time.Time, error)                   { return time.Time{}, errDeaf }

// The script of a send: the account and the place in the box are compared, the message is put there, and an entry
// of the audit log is added, all or nothing.
const redisSend = `
local a = redis.call('HMGET', 'account/' .. ARGV[1], 'granted', 'used')
if tonumber(a[1] or 1e15) - tonumber(a[2] or 0) < 1 then return redis.error_reply('too little is free') end
if redis.call('LLEN', ARGV[1]) >= 1024 then return redis.error_reply('the box is full') end
redis.call('HINCRBY', 'account/' .. ARGV[1], 'used', 1)
redis.call('RPUSH', ARGV[1], ARGV[2])
redis.call('XADD', 'audit', '*', 'entry', ARGV[3])
return 1`

// redisMail has a list for each box, and a connection.
type redisMail struct {
	redis
	name, second string
	caller       *redisCaller
	script       string // its digest
}

func (r *redisMail) put(box string) (err error) {
	if r.caller == nil {
		if r.caller, err = dialRedis(filepath.Join(r.folder, redisSocket)); err != nil {
			return err
		}
		if r.script, err = r.caller.call("SCRIPT", "LOAD", redisSend); err != nil {
			return err
		}
	}
	_, err = r.caller.call("EVALSHA", r.script, "0", box, mailBody, auditEntry)
	return err
}

func (r *redisMail) send(callers, turns int) (took []float64, err error) {
	if callers != 1 {
		return nil, errors.New("an agent is one caller of Redis")
	}
	for range turns {
		began := time.Now()
		if err := r.put(r.name); err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(began)))
	}
	return took, nil
}

func (r *redisMail) clear() error {
	_, err := r.caller.call("DEL", r.name)
	return err
}

func (r *redisMail) tell() error { return r.put(r.second) }

func (r *redisMail) hear() (came time.Time, err error) {
	if r.caller == nil {
		if r.caller, err = dialRedis(filepath.Join(r.folder, redisSocket)); err == nil {
			r.script, err = r.caller.call("SCRIPT", "LOAD", redisSend)
		}
	}
	if err == nil {
		_, err = r.caller.call("BLPOP", r.name, "0")
	}
	for range 4 { // two texts, each behind its length
		if err == nil {
			_, err = r.caller.line()
		}
	}
	return time.Now(), err
}

// natsMail is JetStream: a stream for all boxes, with a subject for each.
type natsMail struct {
	address, name, second string
	callers               []*natsCaller
	hearing               *natsCaller
}

// natsStream bounds each box as clove does, and refuses the sender.
const natsStream = `{"name":"MAIL","subjects":["mail.>"],"storage":"file","retention":"limits","num_replicas":1,"max_msgs_per_subject":1024,"discard":"new","discard_new_per_subject":true}`

func (n *natsMail) connect(number int) error {
	for len(n.callers) < number {
		c, err := dialNATS(n.address)
		if err == nil && len(n.callers) == 0 {
			err = c.request("$JS.API.STREAM.CREATE.MAIL", natsStream)
		}
		if err != nil {
			return err
		}
		n.callers = append(n.callers, c)
	}
	return nil
}

func (n *natsMail) send(callers, turns int) ([]float64, error) {
	if err := n.connect(callers); err != nil {
		return nil, err
	}
	return atOnce(callers, func(i int) (took []float64, err error) {
		for range turns {
			began := time.Now()
			if err := n.callers[i].request(fmt.Sprintf("mail.%s.%d", n.name, i), natsMessage); err != nil {
				return nil, err
			}
			took = append(took, millis(time.Since(began)))
		}
		return took, nil
	})
}

// natsMessage has the entry of the audit log in it: JetStream has no transaction over two streams.
var natsMessage = `{"body":` + mailBody + `,"entry":"` + auditEntry + `"}`

func (n *natsMail) clear() error { return n.callers[0].request("$JS.API.STREAM.PURGE.MAIL", "") }

func (n *natsMail) tell() error {
	err := n.connect(1)
	if err == nil {
		err = n.callers[0].request("mail.heard", natsMessage)
	}
	return err
}

func (n *natsMail) hear() (came time.Time, err error) {
	if n.hearing == nil {
		if err = n.connect(1); err != nil {
			return came, err
		}
		if n.hearing, err = dialNATS(n.address); err != nil {
			return came, err
		}
		if err = n.hearing.subscribe("_HEARD", 2); err == nil {
			err = n.hearing.request("$JS.API.CONSUMER.CREATE.MAIL", `{"stream_name":"MAIL","config":{"deliver_subject":"_HEARD","ack_policy":"none","deliver_policy":"all","filter_subject":"mail.heard"}}`)
		}
	}
	if err == nil {
		_, err = n.hearing.message()
	}
	return time.Now(), err
}

// natsCaller is one connection with an inbox of its own.
type natsCaller struct {
	net.Conn
	in    *bufio.Reader
	inbox string
}

func dialNATS(address string) (*natsCaller, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	c := &natsCaller{conn, bufio.NewReader(conn), "_INBOX." + strings.NewReplacer(".", "-", ":", "-").Replace(conn.LocalAddr().String())}
	if _, err := c.in.ReadString('\n'); err != nil { // INFO
		return nil, err
	}
	if _, err := c.Write([]byte("CONNECT {\"verbose\":false,\"pedantic\":false}\r\n")); err != nil {
		return nil, err
	}
	return c, c.subscribe(c.inbox, 1)
}

func (c *natsCaller) subscribe(subject string, number int) error {
	_, err := fmt.Fprintf(c, "SUB %s %d\r\n", subject, number)
	return err
}

// request sends a message and waits for its answer, which JetStream gives when it is stored.
func (c *natsCaller) request(subject, payload string) error {
	if _, err := fmt.Fprintf(c, "PUB %s %s %d\r\n%s\r\n", subject, c.inbox, len(payload), payload); err != nil {
		return err
	}
	text, err := c.message()
	if err == nil && strings.Contains(text, `"error"`) {
		err = errors.New("the server answers " + text)
	}
	return err
}

// message waits for the next message.
func (c *natsCaller) message() (string, error) {
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "PONG" || words[0] == "INFO" || words[0] == "+OK":
			continue
		case words[0] == "PING":
			_, err = c.Write([]byte("PONG\r\n"))
		case words[0] != "MSG":
			err = fmt.Errorf("the server says %q", line)
		default:
			length, err := strconv.Atoi(words[len(words)-1])
			if err != nil {
				return "", err
			}
			text := make([]byte, length+2)
			_, err = io.ReadFull(c.in, text)
			return string(text[:length]), err
		}
		if err != nil {
			return "", err
		}
	}
}
