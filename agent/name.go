package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// RunName is the name of a run together with its owner. Names are unique for each
// owner: two users may use the same one at the same time.
type RunName struct {
	UID  uint32
	Name string
}

// Name returns the run's name together with its owner.
func (r Run) Name() RunName { return RunName{r.Owner.UID, r.Spec.Name} }

// String returns UID/NAME, which means the same run for every caller. No name
// contains a '/' (ValidateName), so nothing else has this form.
func (n RunName) String() string { return strconv.FormatUint(uint64(n.UID), 10) + "/" + n.Name }

// For returns the name as the user uid writes it: a run of their own without its owner.
func (n RunName) For(uid uint32) string {
	if n.UID == uid {
		return n.Name
	}
	return n.String()
}

// ParseRunName reads NAME, which means a run of the user uid, or UID/NAME. The
// error is of KindInvalid. It does not check the grammar of NAME: a name that
// breaks it belongs to no run.
func ParseRunName(text string, uid uint32) (RunName, error) {
	owner, name, qualified := strings.Cut(text, "/")
	if !qualified {
		return RunName{uid, text}, nil
	}
	number, err := strconv.ParseUint(owner, 10, 32)
	// Each run has one spelling: 01000/web and +1000/web are mistakes.
	if n := (RunName{uint32(number), name}); err == nil && n.String() == text && name != "" && !strings.Contains(name, "/") {
		return n, nil
	}
	return RunName{}, &Error{Kind: KindInvalid, Step: "name", Message: fmt.Sprintf("%.128q is neither a run's name nor an ID", text),
		Hint: "write NAME, an ID, or UID/NAME with the number of the owner, such as 1000/web"}
}

// Index is where Resolve looks up runs. It contains the runs that the caller may
// see and no others, so that no user learns what others run.
type Index interface {
	Has(id ID) bool
	Named(name RunName) (id ID, found bool)
	// Elsewhere returns a run of this name with any owner.
	Elsewhere(name string) (other RunName, found bool)
	// Beginning returns at most two of the ids that begin with prefix: more are
	// not needed to know that it is ambiguous.
	Beginning(prefix string) []ID
}

// minPrefix is the shortest part of an id that Resolve takes for one.
const minPrefix = 4

// Resolve returns the id of the run that text means for the user uid: an id, a
// name, UID/NAME, or the beginning of exactly one id. An id comes before a name
// and a name before a beginning, so that a whole id or name is never ambiguous.
//
// A bare name never means another user's run, not even for root and where only one
// user has it: that user could end the run, and root's command would then act on
// whatever run has the name next.
func Resolve(in Index, text string, uid uint32) (ID, error) {
	if id := ID(text); in.Has(id) {
		return id, nil
	}
	name, err := ParseRunName(text, uid)
	if err != nil {
		return "", err
	}
	if id, found := in.Named(name); found {
		return id, nil
	}
	if other, found := in.Elsewhere(text); found {
		return "", &Error{Kind: KindNotFound, Message: fmt.Sprintf("you have no run %q, but another user has", text),
			Hint: fmt.Sprintf("name the owner too: %s; clove ps -a lists the runs", other)}
	}
	var ids []ID
	// A shorter text could begin many ids, and a mistyped name would hit one.
	if len(text) >= minPrefix {
		ids = in.Beginning(text)
	}
	switch len(ids) {
	case 0:
		return "", &Error{Kind: KindNotFound, Message: fmt.Sprintf("there is no run %q", text), Hint: "clove ps -a lists the runs"}
	case 1:
		return ids[0], nil
	}
	return "", &Error{Kind: KindInvalid, Message: fmt.Sprintf("%q begins more than one id, %s and %s among them", text, ids[0], ids[1]),
		Hint: "give more digits of the id"}
}
