package budget

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
)

func TestParseLimit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Limit{
		"cpu_ms=2000":               {CPU, 2000, 1600, ""},
		"wall_ms=1m30s":             {Wall, 90_000, 72_000, ""},
		"tokens=20k":                {Tokens, 20_000, 16_000, ""},
		"tokens_in=1.5M":            {TokensIn, 1_500_000, 1_200_000, ""},
		"cost=0.50usd":              {CostMicros, 500_000, 400_000, ""},
		"cost_micros=7":             {CostMicros, 7, 6, ""},
		"cost=0.000001USD/month":    {CostMicros, 1, 1, Month},
		"write_bytes=1G":            {WriteBytes, 1 << 30, 1<<30 - 1<<30/5, ""},
		"net_bytes=1.5k,warn=1k":    {NetBytes, 1536, 1024, ""},
		"reviews=10/day":            {"reviews", 10, 8, Day},
		"reviews=10/day,warn=0":     {"reviews", 10, 0, Day},
		"reviews=10,warn=10":        {"reviews", 10, 10, ""},
		"reviews=0":                 {"reviews", 0, 0, ""},
		"x_1=9007199254740991/hour": {"x_1", MaxAmount, MaxAmount - MaxAmount/5, Hour},
	} {
		got, err := ParseLimit(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestParseLimitRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                             "not a budget",
		"reviews":                      "not a budget",
		"reviews=":                     "not an amount",
		"reviews=-1":                   "not an amount",
		"reviews=1e3":                  "not an amount",
		"reviews=0x10":                 "not an amount",
		"reviews=1/2":                  "not a period",
		"reviews=1/":                   "not a period",
		"reviews=1/year":               "not a period",
		"reviews=1,warn=2":             "come after the end",
		"reviews=1,warn=":              "not an amount",
		"reviews=0.5":                  "too exact",
		"reviews=9007199254740992":     "too large",
		"reviews=10T":                  "not an amount",
		"cost=0.5":                     "has no currency",
		"cost=1":                       "has no currency",
		"cost=1usd,warn=1":             "has no currency",
		"cost_micros=0.5":              "too exact",
		"cost=0.0000001usd":            "too exact",
		"cost=1eur":                    "not an amount",
		"tokens=0.5usd":                "not an amount",
		"cpu_ms=5M":                    "not an amount",
		"cpu_ms=1us":                   "not an amount",
		"wall_ms=-5s":                  "not an amount",
		"write_bytes=1X":               "not a size",
		"Reviews=1":                    "not a dimension",
		"1x=1":                         "not a dimension",
		"=1":                           "not a dimension",
		"a-b=1":                        "not a dimension",
		strings.Repeat("a", 33) + "=1": "not a dimension",
	} {
		_, err := ParseLimit(text)
		if agent.KindOf(err) != agent.KindInvalid || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The text of a limit reads as the same limit.
func TestLimitsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		granted := rapid.Int64Range(0, MaxAmount>>1).Draw(t, "granted")
		want := Limit{
			Dimension: rapid.SampledFrom([]Dimension{Tokens, CostMicros, CPU, WriteBytes, "reviews"}).Draw(t, "dimension"),
			Granted:   granted,
			WarnAt:    rapid.OneOf(rapid.Int64Range(0, granted), rapid.Just(warning(granted))).Draw(t, "warn"),
			Period:    rapid.SampledFrom([]Period{"", Hour, Day, Month}).Draw(t, "period"),
		}
		if got, err := ParseLimit(want.String()); err != nil || got != want {
			t.Fatalf("%s: %+v, %v, want %+v", want, got, err, want)
		}
	})
}

func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{"tokens=20k", "cost=0.5usd/day,warn=0.1usd", "wall_ms=1h", "write_bytes=1G", "a=1/b,warn=c=d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLimit(text)
		if err != nil {
			if agent.KindOf(err) != agent.KindInvalid {
				t.Fatal(err)
			}
			return
		}
		if again, err := ParseLimit(l.String()); err != nil || again != l || l.Validate() != nil {
			t.Fatalf("%q: %+v, then %+v, %v", text, l, again, err)
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	id := agent.NewID()
	for key, uid := range map[Key]uint32{OwnerKey(0): 0, OwnerKey(4294967294): 4294967294, NamespaceKey(7, "acme/research"): 7, NameKey(1000, "a.b"): 1000, RunKey(1000, id): 1000} {
		if got, ok := key.Owner(); !ok || got != uid {
			t.Errorf("%s: %d, %v", key, got, ok)
		}
	}
	for _, key := range []Key{"", "x", "-1", "01", "4294967296", "1/", "1/ns:", "1/ns:/a", "1/ns:a//b", "1/ns:a/..", "1/ns:../a", "1/name:a/b", "1/name:", "1/run:x", "1/run:", "1/what:a", "1/1",
		NamespaceKey(1, strings.Repeat("a/", 128)+"a")} {
		if _, ok := key.Owner(); ok {
			t.Errorf("%q is a key", key)
		}
	}
}

// An agent counts own dimensions and tokens of models that are not clove's, and nothing
// that clove counts.
func TestWhoCounts(t *testing.T) {
	t.Parallel()
	for d := range own {
		if d.Own() || d.Counted() == (d == Tokens) {
			t.Errorf("%s: own %v, counted %v", d, d.Own(), d.Counted())
		}
		if err := d.Validate(); err != nil {
			t.Error(err)
		}
	}
	if d := Dimension("reviews"); !d.Own() || d.Counted() || d.Metered() {
		t.Error("reviews is clove's")
	}
	if !CPU.Metered() || TokensIn.Metered() || Refuse.For(CPU) != End || Refuse.For(TokensIn) != Refuse || AtEnd("").For("x") != End || Pause.For(CPU) != Pause {
		t.Error("what is metered cannot be refused")
	}
	for _, at := range []AtEnd{End, Pause, Refuse} {
		if got, err := ParseAtEnd(string(at)); err != nil || got != at {
			t.Errorf("%q: %q, %v", at, got, err)
		}
	}
	if _, err := ParseAtEnd("stop"); agent.KindOf(err) != agent.KindInvalid {
		t.Error(err)
	}
}
