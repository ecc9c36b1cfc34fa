package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// redisSocket is the server's, in the folder that the agent shares with the host.
const redisSocket = "redis.sock"

// auditEntry is what each peer notes of a change: as long as clove's entry is.
var auditEntry = strings.Repeat("x", 300)

// The scripts of a change: the free amount is compared, the reservation is noted, and an
// entry of the audit log is added, all or nothing.
const (
	redisReserve = `
local a = redis.call('HMGET', 'account', 'granted', 'used', 'reserved')
if tonumber(a[1] or 1e15) - tonumber(a[2] or 0) - tonumber(a[3] or 0) < tonumber(ARGV[2]) then return redis.error_reply('too little is free') end
redis.call('HINCRBY', 'account', 'reserved', ARGV[2])
redis.call('HSET', 'reservations', ARGV[1], ARGV[2])
redis.call('XADD', 'audit', '*', 'entry', ARGV[3])
return 1`
	redisRelease = `
local amount = redis.call('HGET', 'reservations', ARGV[1])
if not amount then return redis.error_reply('no reservation') end
redis.call('HINCRBY', 'account', 'reserved', -amount)
redis.call('HDEL', 'reservations', ARGV[1])
redis.call('XADD', 'audit', '*', 'entry', ARGV[3])
return 1`
)

// redis is a server with a connection for each caller.
type redis struct {
	folder  string
	callers []*redisCaller
}

func (r *redis) spend(callers, turns int) ([]float64, error) {
	for len(r.callers) < callers {
		c, err := newRedisCaller(filepath.Join(r.folder, redisSocket), len(r.callers))
		if err != nil {
			return nil, err
		}
		r.callers = append(r.callers, c)
	}
	return atOnce(callers, func(i int) ([]float64, error) { return r.callers[i].spend(turns) })
}

// redisCaller is one connection.
type redisCaller struct {
	net.Conn
	in               *bufio.Reader
	number           int
	reserve, release string // the scripts' digests
}

func newRedisCaller(path string, number int) (*redisCaller, error) {
	c, err := dialRedis(path)
	if err != nil {
		return nil, err
	}
	c.number = number
	if c.reserve, err = c.call("SCRIPT", "LOAD", redisReserve); err == nil {
		c.release, err = c.call("SCRIPT", "LOAD", redisRelease)
	}
	return c, err
}

func dialRedis(path string) (*redisCaller, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return &redisCaller{Conn: conn, in: bufio.NewReader(conn)}, nil
}

func (c *redisCaller) spend(turns int) (took []float64, err error) {
	for turn := range turns {
		id := fmt.Sprintf("%d-%d", c.number, turn/2)
		if turn%2 == 1 {
			if _, err := c.call("EVALSHA", c.release, "0", id, "1", auditEntry); err != nil {
				return nil, err
			}
			continue
		}
		began := time.Now()
		if _, err := c.call("EVALSHA", c.reserve, "0", id, "1", auditEntry); err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(began)))
	}
	return took, nil
}

// call sends one command in Redis' protocol (RESP) and reads the answer: a line, or a text
// of a stated length.
func (c *redisCaller) call(words ...string) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := c.Write([]byte(text.String())); err != nil {
		return "", err
	}
	line, err := c.line()
	if err != nil {
		return "", err
	}
	switch line[0] {
	case '-':
		return "", errors.New("the server answers " + line[1:])
	case '$':
		if _, err := strconv.Atoi(line[1:]); err != nil {
			return "", err
		}
		return c.line() // the texts that are read here have no line of their own inside
	}
	return line[1:], nil
}

func (c *redisCaller) line() (string, error) {
	line, err := c.in.ReadString('\n')
	if err == nil && len(line) < 3 {
		err = fmt.Errorf("the server answers %q", line)
	}
	return strings.TrimRight(line, "\r\n"), err
}
