package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The measurements of mail.
const (
	whatSend      = "a durable send"
	whatSends1    = "durable sends, 1 agent"
	whatSends64   = "durable sends, 64 agents"
	whatSendGain  = "64 agents to 1"
	whatHeard     = "from a send to the waiting receiver"
	whatHeardThen = "to the waiting receiver after the commit, at most"
	whatBox       = "kernel.db that a mailbox takes"
)

// mailers is how many agents send at the same time.
const mailers = 64

// The messages of each agent in a round, and how many of them go to a waiting receiver.
const (
	sendsOfOne  = 20
	sendsOfMany = 10
	sendsOfMost = 40 // where no sandbox is in the way, many are sent in a short time
	heard       = 15
)

// measureMail measures messages between sandboxes.
func (b *bench) measureMail(t *table) (err error) {
	w := &mails{site: site{bench: b, dir: b.scratch, here: b.thread}, folder: filepath.Join(b.scratch, "mail-shared")}
	defer func() { err = errors.Join(err, w.close()) }()
	peers, err := w.open(t)
	if err != nil {
		return err
	}
	s, err := b.inRounds(func(round int, s samples) error {
		turn := slices.Clone(peers)
		if round%2 == 1 { // so that no peer is always behind the same one
			slices.Reverse(turn)
		}
		return mailInTurns(turn, s)
	})
	t.Figures = append(t.Figures, judgeMail(s)...)
	return err
}

// mailInTurns has the peers do each errand directly after another.
func mailInTurns(peers []*mailPeer, s samples) error {
	for _, errand := range []func(*mailPeer, samples) error{(*mailPeer).sendAlone, (*mailPeer).sendTogether, (*mailPeer).deliver} {
		for _, p := range peers {
			if err := errand(p, s); err != nil {
				return fmt.Errorf("cannot measure %s: %w", p.name, err)
			}
		}
	}
	return nil
}

// mailPeer is a post office as agents see it.
type mailPeer struct {
	name    string
	post    string
	clients []mailClient // each has a box; one has as many as it has callers
	alone   bool         // it is measured with one sender only
	deaf    bool         // it has no receivers that wait
}

// mailClient carries out orders.
type mailClient interface {
	run(order any) (report, error)
}

// all sends an order to clients at once, and returns the reports in their order.
func (p *mailPeer) all(clients []mailClient, o mailOrder) ([]report, error) {
	o.Post = p.post
	said, errs := make([]report, len(clients)), make([]error, len(clients))
	var each sync.WaitGroup
	for i, c := range clients {
		each.Go(func() { said[i], errs[i] = c.run(o) })
	}
	each.Wait()
	return said, errors.Join(errs...)
}

// timed has clients send, and returns the reports and the rate. What was sent is taken out of the boxes behind
// the measurement.
func (p *mailPeer) timed(clients []mailClient, o mailOrder) ([]report, float64, error) {
	o.Do = doSend
	began := time.Now()
	said, err := p.all(clients, o)
	took := time.Since(began).Seconds()
	if err == nil {
		_, err = p.all(clients, mailOrder{Do: doClear})
	}
	return said, float64(len(clients)*o.Callers*o.Turns) / took, err
}

func (p *mailPeer) sendAlone(s samples) error {
	said, rate, err := p.timed(p.clients[:1], mailOrder{Callers: 1, Turns: sendsOfOne})
	if err == nil {
		s.add(whatSend, p.name, said[0].Values...)
		s.add(whatSends1, p.name, rate)
	}
	return err
}

func (p *mailPeer) sendTogether(s samples) error {
	if p.alone {
		return nil
	}
	o := mailOrder{Callers: 1, Turns: sendsOfMany}
	if len(p.clients) < mailers {
		o.Callers = mailers
	}
	clients := p.clients[:mailers/o.Callers]
	if p.post == postStore {
		o.Turns = sendsOfMost
	}
	_, rate, err := p.timed(clients, o)
	if err == nil {
		s.add(whatSends64, p.name, rate)
	}
	return err
}

// deliver has the first client send to the second one, which waits.
func (p *mailPeer) deliver(s samples) error {
	if p.alone || p.deaf {
		return nil
	}
	heardAt := make(chan report, 1)
	failed := make(chan error, 1)
	go func() {
		said, err := p.all(p.clients[1:2], mailOrder{Do: doHear, Turns: heard})
		heardAt <- said[0]
		failed <- err
	}()
	told, err := p.all(p.clients[:1], mailOrder{Do: doTell, Turns: heard})
	at := <-heardAt
	if err = errors.Join(err, <-failed); err != nil {
		return err
	}
	whole, behind, err := delays(told[0].Values, at.Values)
	if err != nil {
		return err
	}
	s.add(whatHeard, p.name, whole...)
	if p.post != postClove {
		return nil
	}
	// The answer to the sender leaves when the message does, behind the commit, and takes less than a call and
	// its answer without a commit.
	checks, err := p.all(p.clients[:1], mailOrder{Do: doCheck, Turns: heard})
	if err == nil {
		for i := range behind {
			behind[i] += median(checks[0].Values)
		}
		s.add(whatHeardThen, p.name, behind...)
	}
	return err
}

// delays are, in milliseconds, how long messages took from the begin of their sending, and from the answer to
// their sender. The moments are in nanoseconds: of each message when it was sent and answered, and when it came.
func delays(told, came []float64) (whole, behind []float64, err error) {
	if len(told) != 2*len(came) {
		return nil, nil, fmt.Errorf("%d of %d messages came", len(came), len(told)/2)
	}
	for i, at := range came {
		whole = append(whole, (at-told[2*i])/1e6)
		behind = append(behind, (at-told[2*i+1])/1e6)
	}
	return whole, behind, nil
}

// judgeMail has a line for each peer and errand.
func judgeMail(s samples) (figures []figure) {
	s.divide(whatSendGain, whatSends64, whatSends1)
	for _, r := range []comparison{
		{what: whatSend, unit: unitMS, aims: map[string]string{postClove: "2", postMany: "ratio 1.05"}},
		{what: whatSends1, unit: unitAnswers},
		{what: whatSends64, unit: unitAnswers, base: postSQLite, aims: map[string]string{postClove: "ratio 2.0 or more"}},
		{what: whatSendGain, unit: unitTimes, aims: map[string]string{postClove: "6 or more", postStore: "20 or more"}},
		{what: whatHeard, unit: unitMS},
		{what: whatHeardThen, unit: unitMS, aims: map[string]string{postClove: "1"}},
	} {
		figures = append(figures, r.figures(namesOf(mailKinds), s)...)
	}
	return figures
}
