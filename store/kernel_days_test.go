package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/kernel/budget"
)

var aDay = time.Date(2026, 11, 23, 23, 59, 59, 0, time.UTC)

// daySums returns what a choice finds, as text, in parts of limit.
func daySums(t *testing.T, k *Kernel, c DayChoice, limit int) string {
	t.Helper()
	var all []string
	for {
		var part []DaySum
		must(t, k.Read(func(tx *KernelTx) (err error) { part, err = DailySums.Choose(tx, c, limit); return err }))
		for _, s := range part {
			all = append(all, fmt.Sprint(s.Day[5:], " ", s.Owner, " ", s.Dimension, " ", s.Used))
			c.After = s.Key()
		}
		if len(part) < limit {
			return strings.Join(all, ", ")
		}
	}
}

// Sums are by day of UTC, user and dimension, and a choice returns its own in each size of
// parts.
func TestDaySums(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t))
	k.db.NoSync = true
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(
			DailySums.Count(tx, 10, budget.Amounts{"n": 1, "m": 2}, aDay),
			DailySums.Count(tx, 10, budget.Amounts{"n": 4}, aDay.In(time.FixedZone("elsewhere", -5*3600))),
			DailySums.Count(tx, 1, budget.Amounts{"n": 8}, aDay),
			DailySums.Count(tx, 10, budget.Amounts{"n": 16}, aDay.Add(time.Second)),
			DailySums.Count(tx, 10, nil, aDay.AddDate(0, 0, 9)))
	})
	ten := uint32(10)
	for _, row := range []struct {
		choice DayChoice
		want   string
	}{
		{DayChoice{}, "11-23 1 n 8, 11-23 10 m 2, 11-23 10 n 5, 11-24 10 n 16"},
		{DayChoice{Owner: &ten}, "11-23 10 m 2, 11-23 10 n 5, 11-24 10 n 16"},
		{DayChoice{From: "2026-11-24"}, "11-24 10 n 16"},
		{DayChoice{To: "2026-11-23", Owner: &ten}, "11-23 10 m 2, 11-23 10 n 5"},
		{DayChoice{From: "2026-11-25"}, ""},
	} {
		for limit := 1; limit < 6; limit++ {
			if got := daySums(t, k, row.choice, limit); got != row.want {
				t.Errorf("%+v in parts of %d: %s, want %s", row.choice, limit, got, row.want)
			}
		}
	}
}

// The oldest days are removed for a new one, and a day has so many dimensions of one user.
// An amount that is added to an old row takes no space.
func TestDaySumsAreBounded(t *testing.T) {
	t.Parallel()
	k := openKernel(t, kernelFile(t))
	k.db.NoSync = true
	inTx(t, k, func(tx *KernelTx) (err error) {
		for i := range maxDays + 2 {
			err = firstOf(err, DailySums.Count(tx, 7, budget.Amounts{"n": 1, "m": 1}, aDay.AddDate(0, 0, i)), DailySums.Count(tx, 8, budget.Amounts{"n": 1}, aDay.AddDate(0, 0, i)))
		}
		return err
	})
	sums := strings.Split(daySums(t, k, DayChoice{}, 1<<20), ", ")
	if len(sums) != 3*maxDays || sums[0] != "11-25 7 m 1" {
		t.Errorf("%d sums from %s", len(sums), sums[0])
	}
	last := aDay.AddDate(0, 0, maxDays+1)
	inTx(t, k, func(tx *KernelTx) (err error) {
		for i := range maxDayDimensions + 10 {
			err = firstOf(err, DailySums.Count(tx, 7, budget.Amounts{budget.Dimension(fmt.Sprintf("d%d", i)): 2}, last))
		}
		return firstOf(err, DailySums.Count(tx, 7, budget.Amounts{"n": 1, "d0": 1}, last))
	})
	seven := uint32(7)
	text := daySums(t, k, DayChoice{Owner: &seven, From: last.Format(time.DateOnly)}, 1<<20)
	if n := strings.Count(text, ","); n != maxDayDimensions || !strings.Contains(text, "7 (other) 24,") || !strings.Contains(text, "7 n 2") || !strings.Contains(text, "7 d0 3,") {
		t.Errorf("%d: %s", n, text)
	}
	if problems, err := k.Check(); err != nil || problems != nil {
		t.Errorf("%q, %v", problems, err)
	}
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(tx.store(bucketDays, last.Format(time.DateOnly)+"/7/more", 1), tx.store(bucketDays, "2020-01-01/7/n", 1))
	})
	problems, err := k.Check()
	must(t, err)
	if text := strings.Join(problems, "\n"); len(problems) != 2 || !strings.Contains(text, "more than 256") || !strings.Contains(text, "401 days, more than 400") {
		t.Errorf("%q", problems)
	}
}
