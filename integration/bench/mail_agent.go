package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// roleMailer is this binary as an agent that sends messages.
const roleMailer = "mailer"

// What an order can ask for.
const (
	doSend  = "send"  // durably, each caller to a box of its own
	doClear = "clear" // take what was sent out of the boxes
	doTell  = "tell"  // to the box of the second agent, with pauses
	doHear  = "hear"  // wait for each of these
	doCheck = "check" // call without a change
)

// mailOrder is one JSON object a line.
type mailOrder struct {
	Post    string
	Do      string
	Callers int // in one process
	Turns   int // of each
}

// post is where messages are kept.
type post interface {
	send(callers, turns int) (took []float64, err error) // in milliseconds
	clear() error
	// tell sends one message to the second agent. hear waits for one, notes when it came, and takes it out.
	tell() error
	hear() (came time.Time, err error)
}

// mailBody is a message's body, of 100 bytes.
var mailBody = `"` + strings.Repeat("m", 98) + `"`

// tellPause is between two messages to a waiting receiver: it waits again by then.
const tellPause = 8 * time.Millisecond

// mailerMain is main of this binary in the role of an agent that sends messages. The arguments are the folder that
// it shares with the host, its own name, that of the second agent, and where a server listens that has no socket in
// the folder.
func mailerMain(args []string) error {
	if len(args) != 4 {
		return errors.New("bench mailer FOLDER NAME SECOND ADDRESS")
	}
	m := &mailer{folder: args[0], name: args[1], second: args[2], address: args[3], open: map[string]post{}}
	return answerOrders(os.Stdin, os.Stdout, m.obey)
}

// mailer keeps the posts that it has used.
type mailer struct {
	folder, name, second, address string
	open                          map[string]post
}

func (m *mailer) obey(o mailOrder) (r report) {
	values, err := m.do(o)
	if r.Values = values; err != nil {
		r.Error = err.Error()
	}
	return r
}

func (m *mailer) do(o mailOrder) (values []float64, err error) {
	p, err := m.post(o.Post)
	if err != nil {
		return nil, err
	}
	switch o.Do {
	case doSend:
		return p.send(o.Callers, o.Turns)
	case doClear:
		return nil, p.clear()
	case doCheck:
		return p.(*agentMail).check(o.Turns)
	}
	for range o.Turns {
		if o.Do == doHear {
			var came time.Time
			came, err = p.hear()
			values = append(values, float64(came.UnixNano()))
		} else {
			time.Sleep(tellPause)
			values = append(values, float64(time.Now().UnixNano()))
			err = p.tell()
			values = append(values, float64(time.Now().UnixNano()))
		}
		if err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (m *mailer) post(name string) (p post, err error) {
	if m.open[name] != nil {
		return m.open[name], nil
	}
	switch name {
	case postClove:
		p = &agentMail{agentSocket: agentSocket{path: os.Getenv("CLOVE_AGENT_SOCKET")}, name: m.name, second: m.second}
	case postSQLite:
		p, err = openMailSQLite(m.folder)
	case postRedis:
		p = &redisMail{redis: redis{folder: m.folder}, name: m.name, second: m.second}
	case postNATS:
		p = &natsMail{address: m.address, name: m.name, second: m.second}
	default:
		err = fmt.Errorf("no post is called %q", name)
	}
	if err == nil {
		m.open[name] = p
	}
	return p, err
}

// agentMail is clove as an agent sees it.
type agentMail struct {
	agentSocket
	name, second string
	there        int // messages in its box
}

func (a *agentMail) send(callers, turns int) (took []float64, err error) {
	if callers != 1 {
		return nil, errors.New("an agent of clove's is one caller")
	}
	for range turns {
		began := time.Now()
		if _, err := a.call("mail.send", `{"to":"`+a.name+`","body":`+mailBody+`}`); err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(began)))
		a.there++
	}
	return took, nil
}

func (a *agentMail) call(method, params string) (result agentResult, err error) {
	connections, err := a.connect(1)
	if err == nil {
		err = connections[0].send(0, method, params)
	}
	if err == nil {
		_, result, err = connections[0].receive()
	}
	return result, err
}

func (a *agentMail) clear() error {
	for a.there > 0 {
		taken, err := a.take()
		if err != nil {
			return err
		}
		a.there -= taken
	}
	return nil
}

// take waits for messages and acknowledges them.
func (a *agentMail) take() (int, error) {
	result, err := a.call("mail.receive", `{"most":64}`)
	if err != nil {
		return 0, err
	}
	return len(result.Messages), a.acknowledge(result)
}

func (a *agentMail) acknowledge(result agentResult) error {
	var ids []string
	for _, m := range result.Messages {
		ids = append(ids, m.ID)
	}
	text, err := json.Marshal(ids)
	if err == nil {
		_, err = a.call("mail.ack", `{"ids":`+string(text)+`}`)
	}
	return err
}

func (a *agentMail) tell() error {
	_, err := a.call("mail.send", `{"to":"`+a.second+`","body":`+mailBody+`}`)
	return err
}

// hear acknowledges in the pause before the next message.
func (a *agentMail) hear() (came time.Time, err error) {
	result, err := a.call("mail.receive", `{}`)
	came = time.Now()
	if err == nil {
		err = a.acknowledge(result)
	}
	return came, err
}
