package budget

import (
	"testing"

	"pgregory.net/rapid"
)

// Amounts are shown in the unit that users write.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		d       Dimension
		amounts []int64
		want    string
	}{
		{Tokens, []int64{800, 20_000}, "800 of 20000 tokens"},
		{CostMicros, []int64{412_345, 500_000}, "0.412345usd of 0.5usd"},
		{CostMicros, []int64{0, 3_000_000}, "0usd of 3usd"},
		{CPU, []int64{80_000, 90_050}, "1m20s of 1m30.05s of cpu_ms"},
		{WriteBytes, []int64{1 << 29, 1 << 30}, "512MiB of 1GiB of write_bytes"},
		{"reviews", []int64{8}, "8 reviews"},
	} {
		if got := row.d.Words(row.amounts...); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// What is shown can be typed, and of sizes alone it is rounded.
func TestWhatIsShownIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]Dimension{Tokens, CostMicros, ModelCalls, CPU, Wall, WriteBytes, NetBytes, "reviews"}).Draw(t, "dimension")
		amount := rapid.Int64Range(0, 9e12).Draw(t, "amount")
		got, err := ParseAmount(d, d.Show(amount))
		if exact := d != WriteBytes && d != NetBytes; err != nil || exact && got != amount || max(got-amount, amount-got) > amount/1000 {
			t.Fatalf("%s of %d is read as %d, %v", d.Show(amount), amount, got, err)
		}
	})
}

// What a stopped run is told to be given has room for what it wanted.
func TestLarger(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		d                     Dimension
		granted, used, wanted int64
		p                     Period
		want                  string
	}{
		{CostMicros, 500_000, 470_000, 40_500, "", "cost=1usd"},
		{Tokens, 1000, 900, 5000, "day", "tokens=5900/day"},
		{Tokens, 0, 0, 0, "", "tokens=1"},
		{Tokens, MaxAmount, 0, 1, "", "tokens=9007199254740991"},
		{CPU, 90_000, 90_001, 0, "", "cpu_ms=3m0s"},
		{WriteBytes, 1 << 30, 0, 0, "hour", "write_bytes=2GiB/hour"},
	} {
		if more, err := parseMore(More(row.d, row.granted, row.used, row.wanted)); err != nil || more < row.wanted-(row.granted-row.used) {
			t.Errorf("%s: %d more, %v", row.want, more, err)
		}
		got := Larger(row.d, row.granted, row.used, row.wanted, row.p)
		if _, err := ParseLimit(got); got != row.want || err != nil {
			t.Errorf("%s, want %s, %v", got, row.want, err)
		}
	}
}

func parseMore(text string) (int64, error) {
	l, err := ParseLimit(text)
	return l.Granted, err
}
