package budget

import (
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
)

// MaxAmount is the highest amount that is accepted: what JSON numbers carry exactly.
const MaxAmount = 1<<53 - 1

// MaxDimensions bounds the lines of an account and the amounts of a call.
const MaxDimensions = 64

// Amounts is how much of each dimension, in its unit.
type Amounts map[Dimension]int64

// Validate rejects wrong names, amounts outside of 0 to MaxAmount, and too many of them.
func (a Amounts) Validate() error {
	if len(a) > MaxDimensions {
		return invalid("", "%d dimensions are more than %d", len(a), MaxDimensions)
	}
	for _, d := range a.sorted() {
		if err := d.Validate(); err != nil {
			return err
		}
		if a[d] < 0 || a[d] > MaxAmount {
			return invalid("use a number from 0 to 2^53-1", "%s: %d is out of range", d, a[d])
		}
	}
	return nil
}

// sorted returns the dimensions in a fixed order, so that the same call has the same
// effects.
func (a Amounts) sorted() []Dimension { return slices.Sorted(maps.Keys(a)) }

// whole returns a without zeros, and with Tokens at least the sum that it stands for.
func (a Amounts) whole() Amounts {
	all := maps.Clone(a)
	if sum := a[TokensIn] + a[TokensOut]; sum > a[Tokens] {
		all[Tokens] = sum
	}
	maps.DeleteFunc(all, func(_ Dimension, amount int64) bool { return amount == 0 })
	return all
}

// Sum returns the sum of two amounts that are not negative, at most the highest int64.
func Sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// thousands are the units of plain numbers.
var thousands = map[byte]int64{'k': 1e3, 'm': 1e6, 'g': 1e9}

// ParseAmount parses an amount of d as users write it: bytes as every size (1G), times as
// milliseconds or with a unit (90s), money as micro-dollars or with "usd" (0.50usd), and
// everything else as a number, possibly in thousands (20k, 1.5M).
func ParseAmount(d Dimension, text string) (int64, error) {
	if dollars, ok := strings.CutSuffix(strings.ToLower(text), "usd"); ok && d == CostMicros {
		return decimal(d, dollars, 1e6)
	}
	switch d {
	case WriteBytes, NetBytes:
		return agent.ParseSize(text)
	case CPU, Wall:
		if span, err := time.ParseDuration(text); err == nil && span >= 0 && span%time.Millisecond == 0 {
			return span.Milliseconds(), nil
		}
		return decimal(d, text, 1)
	case CostMicros:
		return decimal(d, text, 1)
	}
	if text != "" {
		if unit, ok := thousands[text[len(text)-1]|' ']; ok {
			return decimal(d, text[:len(text)-1], unit)
		}
	}
	return decimal(d, text, 1)
}

// namedAmount parses an amount of d, which a user has named. Money that is called cost has its currency with it: a bare
// number would be a millionth of what is meant.
func namedAmount(name string, d Dimension, text string) (int64, error) {
	if name == cost && text != "0" && strings.Trim(text, "0123456789.") == "" && text != "" {
		return 0, invalid("write cost="+text+"usd, or cost_micros=NUMBER for millionths of a dollar", "%s: %.64q has no currency", name, text)
	}
	return ParseAmount(d, text)
}

// ParseNamed reads DIMENSION=AMOUNT.
func ParseNamed(text string) (d Dimension, amount int64, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return "", 0, invalid("write DIMENSION=AMOUNT, for example tokens=20k", "%.128q names no amount", text)
	}
	if d, err = ParseDimension(name); err == nil {
		amount, err = namedAmount(name, d, value)
	}
	return d, amount, err
}

// decimal returns number*unit where that is a whole number. It does not round: money is
// compared to the last micro-dollar.
func decimal(d Dimension, number string, unit int64) (int64, error) {
	const hint = "write for example tokens=20k, cost=0.50usd, cpu_ms=90s, write_bytes=1G or reviews=10"
	value, ok := new(big.Rat).SetString(number)
	if !ok || len(number) > 32 || strings.Trim(number, "0123456789.") != "" {
		return 0, invalid(hint, "%s: %.64q is not an amount", d, number)
	}
	value.Mul(value, new(big.Rat).SetInt64(unit))
	if !value.IsInt() || value.Num().Cmp(big.NewInt(MaxAmount)) > 0 {
		return 0, invalid(hint, "%s: %.64q is too large or too exact", d, number)
	}
	return value.Num().Int64(), nil
}

// format is the shortest text that ParseAmount reads as amount of d.
func format(d Dimension, amount int64) string {
	if d == CostMicros {
		dollars := strings.TrimRight(big.NewRat(amount, 1e6).FloatString(6), "0")
		return strings.TrimSuffix(dollars, ".") + "usd"
	}
	return strconv.FormatInt(amount, 10)
}

// Text is how amounts are written in the audit log: as limits of them, in the order of their names.
func (a Amounts) Text() string {
	var all []string
	for _, d := range slices.Sorted(maps.Keys(a)) {
		all = append(all, Limit{Dimension: d, Granted: a[d], WarnAt: a[d] - a[d]/5}.String())
	}
	return strings.Join(all, " ")
}
