package budget

import "testing"

// A provider's name may look like another kind of account, and is none.
func TestAccountsOfProviders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"openai", "a/run:00000000000000aa", "a/b:c", "gpt-6.2_x"} {
		k := ProviderKey(7, name)
		uid, ok := k.Owner()
		_, run := k.Run()
		if got, provider := k.Provider(); !ok || uid != 7 || run || k.ofRun() || !provider || got != name {
			t.Errorf("%s: user %d, %t, a run %t, %q", k, uid, ok, run, got)
		}
	}
	for _, k := range []Key{ProviderKey(7, ""), ProviderKey(7, "A"), ProviderKey(7, "a b"), "7/provider", RunKey(7, "a/provider:x")} {
		if _, ok := k.Owner(); ok {
			t.Errorf("%s is accepted", k)
		}
	}
	if run, ok := RunKey(7, runID).Run(); !ok || run != runID {
		t.Error("control: the account of a run is none")
	}
}

// The limits of a configuration replace all others, and the use stays.
func TestFollow(t *testing.T) {
	t.Parallel()
	a := &Account{Key: ProviderKey(7, "p")}
	for _, row := range []struct {
		limits []string
		fits   int64
	}{{[]string{"tokens=100"}, 100}, {[]string{"tokens=150"}, 50}, {[]string{"model_calls=1"}, 1000}, {[]string{"tokens=1200"}, 50}} {
		var limits []Limit
		for _, text := range row.limits {
			l, err := ParseLimit(text)
			must(t, err)
			limits = append(limits, l)
		}
		must(t, a.Follow(limits, noon))
		c := Chain{{Key: RunKey(7, runID)}, a}
		_, err := reserve(c, Amounts{Tokens: row.fits})
		must(t, err)
		_, err = c.Charge(Amounts{Tokens: row.fits}, noon)
		must(t, err)
		a.Lines[Tokens].Reserved = 0
		for d, l := range a.Lines {
			if broken := l.Broken(d); broken != "" {
				t.Errorf("%v: %s: %s", row, d, broken)
			}
		}
	}
}
