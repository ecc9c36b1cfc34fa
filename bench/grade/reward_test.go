package grade

import "testing"

func TestRewards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		score float64
		why   string
	}{
		{"1\n", 1, ""},
		{"0.5", 0.5, "grader: reward 0.5"},
		{`{"reward": 1, "seconds": 7}`, 1, ""},
		{`{"accuracy": 0.25}`, 0.25, "grader: reward 0.25"},
		{`{"a": 1, "b": 1}`, 0, "grader: its 2 rewards have none with the name reward"},
		{`{}`, 0, "grader: its 0 rewards have none with the name reward"},
		{"2", 0, "grader: a reward of 2 is not from 0 to 1"},
		{"NaN", 0, "grader: a reward of NaN is not from 0 to 1"},
		{"-1", 0, "grader: a reward of -1 is not from 0 to 1"},
		{"", 0, "grader: its reward is neither a number nor an object of numbers"},
		{`{"reward": "1"}`, 0, "grader: its reward is neither a number nor an object of numbers"},
	} {
		if score, why := reward(c.text); score != c.score || why != c.why {
			t.Errorf("%q: %v, %q", c.text, score, why)
		}
	}
}
