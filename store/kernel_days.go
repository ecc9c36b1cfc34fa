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

// maxDayDimensions bounds the rows of a user in one day. What else the user's runs spent is
// in the row OtherDimensions.
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

// dailySums declares no bound: a row that is one too many is counted in another one, and a day
// that is one too many makes room.
var dailySums = Table[DaySum]{
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
}

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

// CountDay adds amounts to the sums of a user and of the day that contains now.
func (t *KernelTx) CountDay(owner uint32, used budget.Amounts, now time.Time) error {
	day := now.UTC().Format(time.DateOnly)
	for _, d := range slices.Sorted(maps.Keys(used)) {
		if err := t.countDay(DaySum{day, owner, string(d), used[d]}); err != nil {
			return err
		}
	}
	return nil
}

func (t *KernelTx) countDay(s DaySum) error {
	before, err := dailySums.Get(t, s.Key())
	if err == nil && before == nil {
		if s, err = t.newDaySum(s); err == nil {
			before, err = dailySums.Get(t, s.Key())
		}
	}
	if err != nil {
		return err
	}
	if before != nil {
		s.Used = budget.Sum(before.Used, s.Used)
	}
	return dailySums.Put(t, &s)
}

// newDaySum makes room for a row, or returns the one that has no bound.
func (t *KernelTx) newDaySum(s DaySum) (DaySum, error) {
	rows, err := t.count(bucketDays, []byte(dayPrefix(s.Day, s.Owner)), maxDayDimensions)
	if err != nil || rows >= maxDayDimensions {
		s.Dimension = OtherDimensions
		return s, err
	}
	if others, err := t.count(bucketDays, []byte(s.Day+"/"), 1); err != nil || others > 0 {
		return s, err
	}
	return s, t.forgetDays()
}

// forgetDays makes room for another day.
func (t *KernelTx) forgetDays() error {
	days, err := t.days()
	for len(days) >= maxDays && err == nil {
		err = t.deleteBelow(bucketDays, days[0]+"/")
		days = days[1:]
	}
	return err
}

// days returns the days that have sums, in order.
func (t *KernelTx) days() (days []string, err error) {
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

// DaySums returns at most limit sums, in the order of days, users and dimensions.
func (t *KernelTx) DaySums(c DayChoice, limit int) (sums []DaySum, err error) {
	days, err := t.days()
	for _, day := range days {
		if day < c.From || c.To != "" && day > c.To || len(sums) >= limit || err != nil {
			continue
		}
		prefix := day + "/"
		if c.Owner != nil {
			prefix = dayPrefix(day, *c.Owner)
		}
		var page []*DaySum
		page, _, err = dailySums.Page(t, prefix, c.After, limit-len(sums))
		for _, s := range page {
			sums = append(sums, *s)
		}
	}
	return sums, err
}
