package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/kernel/budget"
)

// maxDays bounds the days of which sums are kept. They are counted, not dated: a clock that
// jumps ahead must not make the file forget all days before.
const maxDays = 400

// maxDayDimensions bounds the rows of a user in one day. Amounts of other dimensions
// are in the row OtherDimensions.
const maxDayDimensions = 256

// OtherDimensions is no dimension's name.
const OtherDimensions = "(other)"

// DaySum is what all runs of a user spent of a dimension in one day. As JSON it is the amount
// alone: the key contains the rest.
type DaySum struct {
	Day       string // of UTC, 2006-01-02
	Owner     uint32
	Dimension string
	Used      int64
}

// DailySums is the table of daily sums. It declares no bound: a row that is one too many is counted in another one, and a day
// that is one too many replaces the oldest.
var DailySums = DayTable{Table[DaySum]{
	Bucket: string(bucketDays),
	Noun:   "daily sum",
	Key:    (*DaySum).Key,
	Fill:   (*DaySum).fill,
	Sound: func(s *DaySum) error {
		if s.Used < 0 {
			return errors.New("it is negative")
		}
		return nil
	},
}}

// DayTable is the type of DailySums.
type DayTable struct{ Table[DaySum] }

// Key is the place of the sum in the order of all.
func (s DaySum) Key() string { return dayPrefix(s.Day, s.Owner) + s.Dimension }

// MarshalJSON returns the amount.
func (s DaySum) MarshalJSON() ([]byte, error) { return json.Marshal(s.Used) }

// UnmarshalJSON reads the amount.
func (s *DaySum) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, &s.Used) }

// fill reads the key.
func (s *DaySum) fill(key string) (err error) {
	day, rest, _ := strings.Cut(key, "/")
	owner, dimension, _ := strings.Cut(rest, "/")
	uid, isOwner := budget.Key(owner).Owner()
	s.Day, s.Owner, s.Dimension = day, uid, dimension
	sound := budget.Dimension(dimension).Validate() == nil || dimension == OtherDimensions
	if _, err := time.Parse(time.DateOnly, day); err != nil || !sound || !isOwner {
		return fmt.Errorf("%q is no day, user and dimension", key)
	}
	return nil
}

func dayPrefix(day string, owner uint32) string {
	return day + "/" + strconv.FormatUint(uint64(owner), 10) + "/"
}

// Count adds amounts to the sums of a user and of the day that contains now.
func (b DayTable) Count(t *KernelTx, owner uint32, used budget.Amounts, now time.Time) error {
	day := now.UTC().Format(time.DateOnly)
	for _, d := range slices.Sorted(maps.Keys(used)) {
		if err := b.add(t, DaySum{day, owner, string(d), used[d]}); err != nil {
			return err
		}
	}
	return nil
}

func (b DayTable) add(t *KernelTx, s DaySum) error {
	before, err := b.Get(t, s.Key())
	if err == nil && before == nil {
		if s, err = b.newRow(t, s); err == nil {
			before, err = b.Get(t, s.Key())
		}
	}
	if err != nil {
		return err
	}
	if before != nil {
		s.Used = budget.Sum(before.Used, s.Used)
	}
	return b.Put(t, &s)
}

// newRow makes space for a row, or returns the one that has no bound.
func (b DayTable) newRow(t *KernelTx, s DaySum) (DaySum, error) {
	rows, err := t.count(bucketDays, []byte(dayPrefix(s.Day, s.Owner)), maxDayDimensions)
	if err != nil || rows >= maxDayDimensions {
		s.Dimension = OtherDimensions
		return s, err
	}
	if others, err := t.count(bucketDays, []byte(s.Day+"/"), 1); err != nil || others > 0 {
		return s, err
	}
	return s, b.forgetDays(t)
}

// forgetDays makes space for another day.
func (b DayTable) forgetDays(t *KernelTx) error {
	days, err := b.days(t)
	for len(days) >= maxDays && err == nil {
		err = t.deleteBelow(bucketDays, days[0]+"/")
		days = days[1:]
	}
	return err
}

// days returns the days that have sums, in order.
func (b DayTable) days(t *KernelTx) (days []string, err error) {
	from := ""
	for {
		first, err := t.rows(bucketDays, nil, []byte(from), 1)
		if err != nil || len(first) == 0 {
			return days, err
		}
		day, _, _ := strings.Cut(string(first[0].key), "/")
		days = append(days, day)
		from = day + "0" // the byte after the slash
	}
}

// DayChoice chooses sums. Empty fields choose all.
type DayChoice struct {
	From, To string // days, both included
	Owner    *uint32
	After    string // the Key of a sum: those behind it
}

// Choose returns at most limit sums, in the order of days, users and dimensions.
func (b DayTable) Choose(t *KernelTx, c DayChoice, limit int) (sums []DaySum, err error) {
	days, err := b.days(t)
	for _, day := range days {
		if day < c.From || c.To != "" && day > c.To || len(sums) >= limit || err != nil {
			continue
		}
		prefix := day + "/"
		if c.Owner != nil {
			prefix = dayPrefix(day, *c.Owner)
		}
		var page []*DaySum
		page, _, err = b.Page(t, prefix, c.After, limit-len(sums))
		for _, s := range page {
			sums = append(sums, *s)
		}
	}
	return sums, err
}
