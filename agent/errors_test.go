package agent

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestErrorText(t *testing.T) {
	t.Parallel()
	rows := []struct {
		err  Error
		want string
	}{
		{Error{Message: "cannot do it"}, "cannot do it"},
		{Error{Step: "--memory", Message: "cannot read 12X"}, "--memory: cannot read 12X"},
		{Error{Step: "rootfs", Message: "cannot mount", Err: syscall.ENOSPC}, "rootfs: cannot mount: no space left on device"},
	}
	for _, row := range rows {
		if got := row.err.Error(); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

func TestFailedKeepsTheFirstStep(t *testing.T) {
	t.Parallel()
	if Failed("x", nil) != nil {
		t.Error("no error became one")
	}
	inner := &Error{Step: "inner", Message: "m"}
	if got := Failed("outer", fmt.Errorf("on the way: %w", inner)); !strings.Contains(got.Error(), "inner") || strings.Contains(got.Error(), "outer") {
		t.Errorf("got %q", got)
	}
	if got := Failed("outer", syscall.EPERM); KindOf(got) != KindInternal || !errors.Is(got, syscall.EPERM) {
		t.Errorf("got %v of kind %s", got, KindOf(got))
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	if got := KindOf(fmt.Errorf("wrapped: %w", &Error{Kind: KindBusy})); got != KindBusy {
		t.Errorf("got %s", got)
	}
	if got := KindOf(errors.New("plain")); got != KindInternal {
		t.Errorf("got %s", got)
	}
}

func TestFailureOfNamesTheErrno(t *testing.T) {
	t.Parallel()
	f := FailureOf(&Error{Step: "network", Message: "cannot make it", Hint: "try", Err: fmt.Errorf("unshare: %w", syscall.ENOSPC)})
	want := Failure{Step: "network", Message: "cannot make it: unshare: no space left on device",
		Errno: "no space left on device", Hint: "try"}
	if *f != want {
		t.Errorf("got %+v", f)
	}
	if FailureOf(nil) != nil {
		t.Error("no error became a failure")
	}
}

// A failure is one line, even of many joined errors.
func TestFailureOfJoinedErrors(t *testing.T) {
	t.Parallel()
	joined := errors.Join(errors.New("first"), errors.New("second"))
	if got := FailureOf(&Error{Message: "cannot copy", Err: joined}).Message; got != "cannot copy: first; second" {
		t.Errorf("%q", got)
	}
	if got := FailureOf(joined).Message; got != "first; second" {
		t.Errorf("%q", got)
	}
	if got := FailureOf(errors.Join(joined, errors.New("third"))).Message; got != "first; second; third" {
		t.Errorf("%q", got)
	}
	if got := FailureOf(fmt.Errorf("open a\nb: %w", joined)).Message; got != "open a\nb: first; second" {
		t.Errorf("a name lost its line break: %q", got)
	}
}
