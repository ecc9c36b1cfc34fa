package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// agentSocket is clove as an agent sees it.
type agentSocket struct {
	path        string
	connections []*agentConnection
}

// agentConnections is how many an agent may have: more callers share them.
const agentConnections = 32

// agentConnection is one, on which several callers have each a call in flight.
type agentConnection struct {
	net.Conn
	in *bufio.Reader
}

// connect returns so many connections, which stay open.
func (a *agentSocket) connect(number int) ([]*agentConnection, error) {
	for len(a.connections) < number {
		conn, err := net.Dial("unix", a.path)
		if err != nil {
			return nil, err
		}
		a.connections = append(a.connections, &agentConnection{conn, bufio.NewReader(conn)})
	}
	return a.connections[:number], nil
}

// check asks so many times, and returns how long each answer took, in milliseconds.
func (a *agentSocket) check(times int) (took []float64, err error) {
	connections, err := a.connect(1)
	if err != nil {
		return nil, err
	}
	for range times {
		began := time.Now()
		if err := connections[0].askCheck(); err != nil {
			return nil, err
		}
		_, result, err := connections[0].receive()
		if err == nil && !result.Allowed {
			err = fmt.Errorf("%s is not allowed", checked)
		}
		if err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(began)))
	}
	return took, nil
}

// spend divides the callers among the connections.
func (a *agentSocket) spend(callers, turns int) (took []float64, err error) {
	connections, err := a.connect(min(callers, agentConnections))
	if err != nil {
		return nil, err
	}
	return atOnce(len(connections), func(i int) ([]float64, error) {
		return connections[i].spend((callers+len(connections)-1-i)/len(connections), turns)
	})
}

// flood asks about a grant as fast as possible, with one call of each caller in flight.
func (a *agentSocket) flood(callers int, until time.Time) error {
	connections, err := a.connect(min(callers, agentConnections))
	if err != nil {
		return err
	}
	_, err = atOnce(len(connections), func(i int) ([]float64, error) {
		c, flying := connections[i], callers/len(connections)
		for range flying {
			if err := c.askCheck(); err != nil {
				return nil, err
			}
		}
		for flying > 0 {
			if _, _, err := c.receive(); err != nil {
				return nil, err
			}
			flying--
			if time.Now().Before(until) {
				if err := c.askCheck(); err != nil {
					return nil, err
				}
				flying++
			}
		}
		return nil, nil
	})
	return err
}

// atOnce runs work so many times at once and returns what all took.
func atOnce(number int, work func(i int) ([]float64, error)) (took []float64, err error) {
	if number == 1 {
		return work(0)
	}
	var mu sync.Mutex // guards took and err
	var all sync.WaitGroup
	for i := range number {
		all.Go(func() {
			mine, failed := work(i)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
			if failed != nil {
				err = failed
			}
		})
	}
	all.Wait()
	return took, err
}

// place is one caller on a connection.
type place struct {
	reservation string // that it has to release; empty: it has to reserve
	turns       int    // that are left
	sent        time.Time
}

// spend keeps one call of each caller in flight.
func (c *agentConnection) spend(callers, turns int) (took []float64, err error) {
	places := make([]place, callers)
	for i := range places {
		places[i].turns = turns
		if err := c.turn(i, &places[i]); err != nil {
			return nil, err
		}
	}
	for range callers * turns {
		i, result, err := c.receive()
		if err != nil {
			return nil, err
		}
		p := &places[i]
		if p.reservation == "" {
			took = append(took, millis(time.Since(p.sent)))
		}
		p.reservation = result.Reservation // a release has none in its answer
		if p.turns > 0 {
			if err := c.turn(i, p); err != nil {
				return nil, err
			}
		}
	}
	return took, nil
}

// turn sends a caller's next call.
func (c *agentConnection) turn(number int, p *place) error {
	p.turns--
	p.sent = time.Now()
	if p.reservation == "" {
		return c.send(number, "budget.reserve", `{"amounts":{"`+spent+`":1}}`)
	}
	return c.send(number, "budget.release", `{"reservation":"`+p.reservation+`"}`)
}

func (c *agentConnection) askCheck() error {
	return c.send(0, "grant.check", `{"what":"`+checked+`"}`)
}

func (c *agentConnection) send(id int, method, params string) error {
	_, err := fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%d,"method":"%s","params":%s}`+"\n", id, method, params)
	return err
}

// agentResult is what the answers have that are read here.
type agentResult struct {
	Reservation string
	Allowed     bool
	Messages    []struct{ ID string }
}

func (c *agentConnection) receive() (id int, result agentResult, err error) {
	var answer struct {
		ID     int
		Result agentResult
		Error  json.RawMessage
		Method string // of a notice, which is no answer
	}
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return 0, result, err
		}
		answer.Method = ""
		if err = json.Unmarshal(line, &answer); err == nil && answer.Error != nil {
			err = fmt.Errorf("clove answers %s", answer.Error)
		}
		if err != nil || answer.Method == "" {
			return answer.ID, answer.Result, err
		}
	}
}
