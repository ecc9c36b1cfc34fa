package daemon

import (
	"errors"
	"testing"
	"time"
)

func TestComplaint(t *testing.T) {
	t.Parallel()
	began := time.Now()
	full, broken := errors.New("full"), errors.New("broken")
	c := complaint{}
	for i, step := range []struct {
		err   error
		after time.Duration
		worth bool
	}{
		{nil, 0, false},
		{full, 0, true},
		{full, complaintPause - 1, false},
		{full, complaintPause, true},
		{broken, complaintPause + 1, true},
		{nil, complaintPause + 2, false},
		{broken, complaintPause + 3, true}, // it worked in between
	} {
		if worth := c.worth(step.err, began.Add(step.after)); worth != step.worth {
			t.Errorf("step %d: %v", i, worth)
		}
	}
}
