package daemon

import (
	"errors"
	"testing"
	"time"
)

func TestLogLimiter(t *testing.T) {
	t.Parallel()
	began := time.Now()
	full, broken := errors.New("full"), errors.New("broken")
	c := logLimiter{}
	for i, step := range []struct {
		err   error
		after time.Duration
		worth bool
	}{
		{nil, 0, false},
		{full, 0, true},
		{full, logPause - 1, false},
		{full, logPause, true},
		{broken, logPause + 1, true},
		{nil, logPause + 2, false},
		{broken, logPause + 3, true}, // it worked in between
	} {
		if worth := c.worth(step.err, began.Add(step.after)); worth != step.worth {
			t.Errorf("step %d: %v", i, worth)
		}
	}
}
