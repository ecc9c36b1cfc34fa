package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/policies/host"
)

// ParseSize reads a size of at least floor bytes. field is the name that an error begins
// with, without dashes, as in the functions below.
func ParseSize(field, text string, floor int64) (int64, error) {
	n, err := agent.ParseSize(text)
	if err != nil {
		f := agent.FailureOf(err)
		return 0, Invalid(field, f.Hint, "%s", f.Message)
	}
	if n < floor {
		return 0, Invalid(field, "give at least "+bytes.say(floor), "%s is too small, the least is %s", text, bytes.say(floor))
	}
	return n, nil
}

// ParseClock reads a duration: Go's, or a number of seconds. It is not negative and at most
// agent.ClockCeiling.
func ParseClock(field, text string) (time.Duration, error) {
	const hint = "write seconds or a duration, for example 90, 1.5s, 10m or 2h30m"
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, serr := strconv.ParseFloat(text, 64)
		if serr != nil || math.IsNaN(seconds) {
			return 0, Invalid(field, hint, "%q is not a duration", text)
		}
		// Clamped before the conversion: a float beyond int64 would become an arbitrary
		// number.
		d = time.Duration(max(-1, min(seconds, agent.ClockCeiling.Seconds()+1)) * float64(time.Second))
	}
	switch {
	case d < 0:
		return 0, Invalid(field, hint, "%q is negative", text)
	case d > agent.ClockCeiling:
		return 0, Invalid(field, "omit the flag for no limit", "%q is more than a hundred years", text)
	}
	return d, nil
}

// ParsePort reads a port from 1 to 65535 in its one decimal form: no sign, no zeros before
// it.
func ParsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err == nil && (port == 0 || text[0] == '0' || text[0] == '+') {
		err = strconv.ErrRange
	}
	return uint16(port), err
}

// ParseSignal reads TERM, SIGTERM, term and 15. 64 is the last signal on all architectures
// that clove is built for.
func ParseSignal(field, text string) (syscall.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= 64 {
		return syscall.Signal(n), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if number := unix.SignalNum(name); number != 0 {
		return number, nil
	}
	return 0, Invalid(field, "write a name such as TERM or HUP, or a number from 1 to 64", "%q is not a signal", text)
}

// The two users that have names. Root is root in the agent's own user namespace only.
var (
	AgentUser = agent.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"}
	RootUser  = agent.User{Name: "root", UID: 0, GID: 0, Home: "/root"}
)

// namedUsers are those that every agent's /etc/passwd has.
var namedUsers = []agent.User{AgentUser, RootUser}

// ParseUser reads NAME|UID[:GID]. A uid without a name has a group of its own
// number: docker's choice, group 0, would share the sandbox root's files. Other names than
// agent and root are looked up in the root directory that the agent sees; empty: in none.
func ParseUser(text, root string) (agent.User, error) {
	name, group, hasGroup := strings.Cut(text, ":")
	user, err := findUser(name, func() (uint32, uint32, bool) { return host.User(root, name) })
	if err != nil {
		return agent.User{}, noUser("user", name, err)
	}
	if hasGroup {
		named, err := findUser(group, func() (uint32, uint32, bool) { id, found := host.Group(root, group); return id, id, found })
		if err != nil {
			return agent.User{}, noUser("group", group, err)
		}
		user.GID = named.GID
	}
	return user, nil
}

// errReserved is the error for ids that no agent has.
var errReserved = errors.New("reserved")

func noUser(what, name string, err error) error {
	if errors.Is(err, errReserved) {
		return Invalid(User, fmt.Sprintf("write a number up to %d, which owns no file either, or omit it: agent has no rights outside", agent.MaxUser),
			"no agent can have the %s %q: ids above %d are clove's own inside", what, name, agent.MaxUser)
	}
	return Invalid(User, document.Meant(name, []string{AgentUser.Name, RootUser.Name},
		fmt.Sprintf("write agent, root, another name of its /etc/passwd or /etc/group, or numbers such as 1000:1000, at most %d", agent.MaxUser)),
		"there is no %s %q inside", what, name)
}

// findUser knows the two names, every number up to agent.MaxUser, and what is looked up; above it are
// clove-init's. All users but root share the agent's home directory, which is given to the
// user that the agent runs as.
func findUser(text string, lookUp func() (uid, gid uint32, found bool)) (agent.User, error) {
	for _, known := range namedUsers {
		if text == known.Name || text == strconv.FormatUint(uint64(known.UID), 10) {
			return known, nil
		}
	}
	id, err := strconv.ParseUint(text, 10, 32)
	uid, gid, found := uint32(id), uint32(id), err == nil
	if found {
		text = strconv.FormatUint(id, 10)
	} else {
		uid, gid, found = lookUp()
	}
	switch {
	case !found:
		return agent.User{}, strconv.ErrSyntax
	case uid == RootUser.UID:
		return RootUser, nil
	case uid > agent.MaxUser || gid > agent.MaxUser:
		return agent.User{}, errReserved
	}
	return agent.User{Name: text, UID: uid, GID: gid, Home: AgentUser.Home}, nil
}
