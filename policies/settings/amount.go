package settings

import (
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"clove.run/clove/agent"
)

// number is what one number of a spec can be.
type number interface {
	~int | ~int64 | ~float64
}

// amount is a setting that is one number of the spec.
type amount[N number] struct {
	unit[N]
	at        func(*agent.Spec) *N
	read      func(r *Reader, flag, text string) (N, error)
	unlimited bool // 0 means no limit
}

// unit is how a number is written in documents and said to people.
type unit[N number] struct {
	write, say func(N) string
}

var (
	bytes   = unit[int64]{writeSize, func(n int64) string { return units.BytesSize(float64(n)) }}
	counts  = unit[int64]{writeCount, writeCount}
	numbers = unit[int]{strconv.Itoa, strconv.Itoa}
	shares  = unit[float64]{writeShare, writeShare}
	clocks  = unit[time.Duration]{writeClock, time.Duration.String}
)

// row fills what follows from the number.
func (a amount[N]) row(s Setting) Setting {
	s.Form = Amount
	s.Read = one(func(r *Reader, text string) (err error) {
		*a.at(r.Spec), err = a.read(r, s.Flag, text)
		return err
	})
	s.Say = func(spec agent.Spec) string { return a.inWords(*a.at(&spec)) }
	if s.Key == "" {
		return s
	}
	if s.Write == nil {
		s.Write = func(spec agent.Spec) []string {
			if n := *a.at(&spec); n > 0 {
				return []string{a.write(n)}
			}
			return nil
		}
	}
	if s.Wider == nil {
		s.Wider = func(base, wide agent.Spec) []Difference { return a.wider(*a.at(&base), *a.at(&wide)) }
	}
	return s
}

func (a amount[N]) inWords(n N) string {
	if a.unlimited && n == 0 {
		return "no limit"
	}
	return a.say(n)
}

func (a amount[N]) wider(base, wide N) []Difference {
	bounded, none := !a.unlimited || base != 0, a.unlimited && wide == 0
	return more(bounded && (none || wide > base), a.inWords(base), a.inWords(wide))
}

// sizeFrom reads a size of at least floor bytes.
func sizeFrom(floor int64) func(*Reader, string, string) (int64, error) {
	return func(_ *Reader, flag, text string) (int64, error) { return ParseSize(flag, text, floor) }
}

// clock reads a duration.
func clock(_ *Reader, flag, text string) (time.Duration, error) { return ParseClock(flag, text) }

// someClock reads a duration other than 0. In a spec 0 means no limit, but a user who writes
// --timeout 0 may mean the opposite.
func someClock(_ *Reader, flag, text string) (time.Duration, error) {
	d, err := ParseClock(flag, text)
	if err == nil && d == 0 {
		err = Invalid(flag, "omit the flag for no limit", "0 leaves the agent no time")
	}
	return d, err
}

// writeSize writes a size with the largest unit that it is a multiple of.
func writeSize(n int64) string {
	for _, unit := range []struct {
		letter string
		shift  int
	}{{"G", 30}, {"M", 20}, {"K", 10}} {
		if n%(1<<unit.shift) == 0 {
			return strconv.FormatInt(n>>unit.shift, 10) + unit.letter
		}
	}
	return strconv.FormatInt(n, 10)
}

func writeCount(n int64) string { return strconv.FormatInt(n, 10) }

func writeShare(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// writeClock writes a duration without parts that are 0.
func writeClock(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
