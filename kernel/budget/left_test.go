package budget

import (
	"errors"
	"math"
	"testing"
	"time"
)

// The rest is the least of all accounts, with and without reservations; a period that
// is over counts no more.
func TestWhatIsLeft(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"tokens=100", "model_calls=9"}, []string{"tokens=80/hour"})
	_, err := c.Charge(Amounts{Tokens: 30}, noon)
	must(t, err)
	_, err = reserve(c, Amounts{Tokens: 40})
	must(t, err)
	left := c.Left(noon)
	if left.Free.Of(Tokens) != 10 || left.Unheld.Of(Tokens) != 50 || left.Free.Of(ModelCalls) != 9 || left.Free.Of(TokensIn) != math.MaxInt64 {
		t.Errorf("%+v", left)
	}
	if later := c.Left(noon.Add(time.Hour)); later.Free.Of(Tokens) != 30 || later.Unheld.Of(Tokens) != 70 {
		t.Errorf("%+v", later)
	}
	for _, row := range []struct {
		in, out int64
		fits    bool
	}{{5, 5, true}, {5, 6, false}, {10, 0, true}} {
		if got := (Amounts{TokensIn: row.in, TokensOut: row.out}).Fits(left.Free); got != row.fits {
			t.Errorf("%+v: %t", row, got)
		}
	}
}

// Of several lines that have too little, the one that no settlement mends is the reason: it
// stops the run.
func TestTheReasonOfARefusalIsTheLastingOne(t *testing.T) {
	t.Parallel()
	c := chainOf(t, []string{"model_calls=5", "tokens_out=100"}, nil)
	_, err := c.Charge(Amounts{TokensOut: 60}, noon)
	must(t, err)
	_, err = reserve(c, Amounts{ModelCalls: 5})
	must(t, err)
	var over *Exceeded
	if _, err = reserve(c, Amounts{ModelCalls: 1, TokensOut: 41}); !errors.As(err, &over) || over.Dimension != TokensOut || !c.Stop(over) {
		t.Errorf("%v", err)
	}
	if _, err = reserve(c, Amounts{ModelCalls: 1, TokensOut: 40}); !errors.As(err, &over) || over.Dimension != ModelCalls || c.Stop(over) {
		t.Errorf("control: %v", err)
	}
}
