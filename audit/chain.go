package audit

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// Chain leads from records to those from which they follow. It reads the log from its end back, and goes on
// where it found the last record: causes are written shortly before what follows from them, as a rule. A Chain
// is for one walk and one goroutine.
type Chain struct {
	// Dir is where the log lies.
	Dir string
	// Queued are entries that are in no segment yet, oldest first.
	Queued []Entry
	// May chooses the records that there are for the caller; nil: all.
	May func(Entry) bool
	// Glance refuses a record by its run and its line, before it is read: what is not there for the caller then takes
	// the time of what there is not; nil: all are read.
	Glance func(run agent.ID, line []byte) bool
	// Most bounds how many bytes of the log are looked at, over all.
	Most int64

	last     uint64
	segments []segment
	at, end  int // where the last record was found: its segment, and near behind its line
	loaded   int // the segment that text has
	text     []byte
}

// ErrDeep is the error of a search that Chain.Most ended.
var ErrDeep = errors.New("the audit log is longer than what is searched")

// near is how far behind a record its cause is looked for first: a call is recorded after what it carries.
const near = 1 << 20

// Call returns the record of the call with an id; false: there is none.
func (c *Chain) Call(id string) (Entry, bool, error) {
	return c.find(func(e Entry) bool { return e.called(id) }, `"correlation":"`+id)
}

// Of returns the newest record of a call that made or took what has an id, but for those of a method; empty: of all.
func (c *Chain) Of(object, except string) (Entry, bool, error) {
	return c.find(func(e Entry) bool { return e.has(object) && (e.Method != except || except == "") }, object, `"object":"`)
}

// Begun returns the newest record of a start or an end of a run.
func (c *Chain) Begun(run string) (Entry, bool, error) {
	return c.find(func(e Entry) bool { return string(e.Run) == run && (e.Kind == KindStart || e.Kind == KindEnd) }, `"run":"`+run)
}

// Cause returns the record from which one follows: the call that it names, else the start of its run, and of
// that the call that made the run. false: none is known, and the record is a root.
func (c *Chain) Cause(e Entry) (Entry, bool, error) {
	run := string(e.Run)
	switch id := e.Causation; {
	case id != "": // a call, or the run with which the record's run ended
		found, is, err := c.Call(id)
		if !is && err == nil && e.Kind == KindEnd {
			found, is, err = c.find(func(f Entry) bool { return f.Kind == KindEnd && string(f.Run) == id }, `"run":"`+id, kindIs(KindEnd))
		}
		return found, is, err
	case e.Kind == KindStart:
		return c.Of(run, "")
	case run != "" && (e.Principal == PrincipalRun(e.Run) || e.Kind == KindEnd):
		return c.find(func(f Entry) bool { return f.Kind == KindStart && f.Run == e.Run }, `"run":"`+run, kindIs(KindStart))
	}
	return Entry{}, false, nil
}

// kindIs is what lines of a kind have.
func kindIs(kind Kind) string { return `"kind":"` + string(kind) + `"` }

// called reports whether a record is that of the call with an id: others follow from it.
func (e Entry) called(id string) bool { return e.Correlation == id && e.Causation != id && id != "" }

// has reports whether an id is among the objects of a record of what was done.
func (e Entry) has(object string) bool {
	return object != "" && e.Verdict == VerdictAllow && slices.Contains(strings.Fields(e.Object), object)
}

// find returns a record that is wanted and has texts in its line, the rarest first: the nearest before the last one
// that was found, or else the newest.
func (c *Chain) find(wanted func(Entry) bool, texts ...string) (Entry, bool, error) {
	is := func(e Entry) bool { return wanted(e) && (c.May == nil || c.May(e)) }
	for _, e := range slices.Backward(c.Queued) {
		if is(e) {
			return e, true, nil
		}
	}
	if err := c.open(); err != nil || len(c.segments) == 0 {
		return Entry{}, false, err
	}
	at, end := c.at, c.end
	for i := at; i >= 0; i-- {
		if e, found, err := c.within(i, 0, end, texts, is); found || err != nil {
			return e, found, err
		}
		end = math.MaxInt
	}
	for i := len(c.segments) - 1; i > at; i-- {
		if e, found, err := c.within(i, 0, math.MaxInt, texts, is); found || err != nil {
			return e, found, err
		}
	}
	return c.within(at, c.end, math.MaxInt, texts, is)
}

// open begins at the end of the log.
func (c *Chain) open() (err error) {
	if c.segments != nil {
		return nil
	}
	if c.last, err = Last(c.Dir); err != nil {
		return err
	}
	c.segments, err = segmentsOf(c.Dir)
	c.at, c.end, c.loaded = len(c.segments)-1, math.MaxInt, -1
	return err
}

// chunk is how much is looked at in one step.
const chunk = 256 << 10

// within looks at the lines of a segment between two offsets, the newest first.
func (c *Chain) within(segment, from, to int, texts []string, is func(Entry) bool) (found Entry, _ bool, err error) {
	if err := c.load(segment); err != nil {
		return found, false, err
	}
	for end := min(to, len(c.text)); end > from; end -= chunk {
		begin := max(from, end-chunk)
		if c.Most -= int64(end - begin); c.Most < 0 {
			return found, false, ErrDeep
		}
		for _, at := range slices.Backward(places(c.text[begin:min(len(c.text), end+len(texts[0])-1)], texts[0])) {
			line, behind := c.line(begin + at)
			if !has(line, texts[1:]) || c.Glance != nil && !c.Glance(runOf(line), line) {
				continue
			}
			if r, err := parse(line); err == nil && r.Number <= c.last && is(r.Entry) {
				c.at, c.end = segment, behind+near
				return r.Entry, true, nil
			}
		}
	}
	return found, false, nil
}

// line is the line around a place, and the place behind it.
func (c *Chain) line(place int) ([]byte, int) {
	first, length := bytes.LastIndexByte(c.text[:place], '\n')+1, bytes.IndexByte(c.text[place:], '\n')
	if length < 0 { // it is being written
		return nil, len(c.text)
	}
	return c.text[first : place+length], place + length
}

func has(line []byte, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !bytes.Contains(line, []byte(text)) })
}

// runOf is the run of a record's line; empty: it has none. A text in a record has no quotes that are not escaped.
func runOf(line []byte) agent.ID {
	_, behind, _ := bytes.Cut(line, []byte(`"run":"`))
	run, _, _ := bytes.Cut(behind, []byte(`"`))
	return agent.ID(run)
}

// load reads a segment. One that was removed meanwhile is empty.
func (c *Chain) load(segment int) (err error) {
	if c.loaded == segment {
		return nil
	}
	c.loaded = segment
	c.text, err = os.ReadFile(c.segments[segment].path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// places are where a text begins, in their order.
func places(in []byte, text string) (found []int) {
	for from := 0; ; {
		at := bytes.Index(in[from:], []byte(text))
		if at < 0 {
			return found
		}
		found, from = append(found, from+at), from+at+1
	}
}
