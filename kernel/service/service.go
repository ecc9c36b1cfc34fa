package service

import (
	"fmt"

	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// Service is a group of methods about one noun, with the tables that it keeps.
type Service struct {
	Name    string
	Tables  []store.Declared
	Methods []Method
}

// New makes a service without methods.
func New(name string, tables ...store.Declared) *Service {
	return &Service{Name: name, Tables: tables}
}

// On adds methods, and returns the service.
func (s *Service) On(methods ...Method) *Service {
	s.Methods = append(s.Methods, methods...)
	return s
}

// Stages are what a method declares about its calls, before anything is done. Each may be nil.
// They read the parameters and nothing else, so that anyone may ask them without doing anything.
type Stages[P any] struct {
	Covers  func(P) []string                // what grants of the calling agent must cover, KIND:PATTERN
	Avoids  func(P) []string                // taints that the calling agent must not carry
	Costs   func(P) (budget.Amounts, error) // the upper bound of what it costs
	Approve func(P) string                  // the question that people answer first; empty: none
	About   func(P) string                  // what the entry of a call says that is refused by a stage
}

// Declared is what one call declares.
type Declared struct {
	Covers  []string
	Avoids  []string
	Costs   budget.Amounts
	Approve string
	About   string
}

func (s Stages[P]) declare(p P) (d Declared, err error) {
	if s.Covers != nil {
		d.Covers = s.Covers(p)
	}
	if s.Avoids != nil {
		d.Avoids = s.Avoids(p)
	}
	if s.Approve != nil {
		d.Approve = s.Approve(p)
	}
	if s.About != nil {
		d.About = s.About(p)
	}
	if s.Costs != nil {
		d.Costs, err = s.Costs(p)
	}
	return d, err
}

// Method is one method that the engine serves. Read, Fetch, Write, Prepared, Act, Stream, Wait and Claim make it.
type Method struct {
	api.Method
	mode    mode
	declare func(params any) (Declared, error)
	do      func(c *Call, params any) (any, Outcome, error)
	prepare func(c *Call, params any) (any, error)        // nil: nothing
	drop    func(prepared any)                            // with prepare
	then    func(c *Call, params, found any) (any, error) // after the transaction of a method that reads; nil: nothing
	carried bool                                          // also without what prepare returns
	topic   func(c *Call, params any) Topic               // a call waits for it; nil: it waits for nothing
	there   func(c *Call, params any) error               // of a method that changes something when it can
	asks    bool                                          // a call may wait for people
	keyed   bool                                          // the parameters have a key
	costs   bool                                          // a call may cost something
	idles   bool                                          // a call that waits, waits for work
	// ask is that of agent.Asks by which people are asked about calls that no grant covers, and question says what.
	ask      string
	question func(c *Call, params any) (Asking, error)
}

type mode int

const (
	reads   mode = iota // in a read transaction
	writes              // in a transaction with its entry and its answer
	acts                // without a transaction
	waits               // in read transactions, until there is something
	streams             // without a transaction, for as long as its caller stays
)

// Read makes a method that changes nothing. A Verdict in its outcome is recorded.
func Read[P, R any](row api.Row[P, R], stages Stages[P], do func(*Call, P) (R, Outcome, error)) Method {
	return method(reads, row, stages, do)
}

// Fetch makes a method that changes nothing in the store, and works with what look found there, such as a
// file, when the transaction has ended.
func Fetch[P, W, R any](row api.Row[P, R], stages Stages[P], look func(*Call, P) (W, Outcome, error), then func(*Call, P, W) (R, error)) Method {
	m := method(reads, row, stages, func(*Call, P) (none R, out Outcome, err error) { return none, out, nil })
	m.do = func(c *Call, params any) (any, Outcome, error) { return look(c, params.(P)) }
	m.then = func(c *Call, params, found any) (any, error) { return then(c, params.(P), found.(W)) }
	return m
}

// Write makes a method that changes something in its transaction.
func Write[P, R any](row api.Row[P, R], stages Stages[P], do func(*Call, P) (R, Outcome, error)) Method {
	return method(writes, row, stages, do)
}

// Act makes a method that acts outside of the store: it has no transaction, waits in no queue and
// is refused by no full disk. Its entry goes into the log's reserve.
func Act[P, R any](row api.Row[P, R], do func(*Call, P) (R, Outcome, error)) Method {
	return method(acts, row, Stages[P]{}, do)
}

// Stream makes a method that works for as long as its caller stays, and has no transaction. Only its
// refusal is recorded. A call with a key is done once at most: a repetition is refused.
func Stream[P, R any](row api.Row[P, R], do func(*Call, P) (R, Outcome, error)) Method {
	return method(streams, row, Stages[P]{}, do)
}

// Wait makes a method that waits. look returns ErrNotYet where there is nothing yet, and is called
// again after a commit that touched the topic.
func Wait[P, R any](row api.Row[P, R], stages Stages[P], topic func(*Call, P) Topic, look func(*Call, P) (R, Outcome, error)) Method {
	m := method(waits, row, stages, look)
	m.topic = func(c *Call, params any) Topic { return topic(c, params.(P)) }
	return m
}

// Claim makes a method that changes something, and waits until it can. there returns ErrNotYet where it cannot
// yet, in a read transaction, and is called again after a commit that touched the topic. Then do is called, which
// may return ErrNotYet before it has written anything: another call was faster. A call for which topic returns
// none does not wait: there is not called, and do must not return ErrNotYet.
func Claim[P, R any](row api.Row[P, R], stages Stages[P], topic func(*Call, P) Topic, there func(*Call, P) error, do func(*Call, P) (R, Outcome, error)) Method {
	m := method(writes, row, stages, do)
	m.topic = func(c *Call, params any) Topic { return topic(c, params.(P)) }
	m.there = func(c *Call, params any) error { return there(c, params.(P)) }
	return m
}

func method[P, R any](kind mode, row api.Row[P, R], stages Stages[P], do func(*Call, P) (R, Outcome, error)) Method {
	_, keyed := any(*new(P)).(interface{ CallKey() string })
	return Method{Method: row.Method(), mode: kind, asks: stages.Approve != nil, keyed: keyed, costs: stages.Costs != nil,
		declare: func(params any) (Declared, error) { return stages.declare(params.(P)) },
		do:      func(c *Call, params any) (any, Outcome, error) { return do(c, params.(P)) }}
}

// table are the methods by name.
type table map[string]Method

// tableOf refuses a method that two services serve, one that may wait for people and has no key,
// because its answer could not be found again, and one that declares what its mode has no stage for.
func tableOf(services []*Service) (table, error) {
	all := table{}
	for _, s := range services {
		for _, m := range s.Methods {
			if _, double := all[m.Name]; double {
				return nil, fmt.Errorf("two services serve %s", m.Name)
			}
			if m.mode != writes && (m.costs || m.asks) {
				return nil, fmt.Errorf("%s changes nothing, and declares costs or a question", m.Name)
			}
			if m.asks && m.ask == "" && m.prepare != nil {
				return nil, fmt.Errorf("%s may wait for people, and what it prepares would wait with it", m.Name)
			}
			if m.asks && !m.keyed {
				return nil, fmt.Errorf("%s may wait for people, and its parameters have no key", m.Name)
			}
			all[m.Name] = m
		}
	}
	return all, nil
}

// exists reports whether the method exists for a caller.
func (m Method) exists(c Caller) bool {
	if c.Agent {
		return m.ForAgents()
	}
	return m.Access != api.AccessSelf && (m.Access != api.AccessRoot || c.Root())
}
