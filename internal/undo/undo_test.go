package undo

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRunGoesBackwardsPastFailures(t *testing.T) {
	t.Parallel()
	var s Stack
	var order []string
	note := func(name string, err error) {
		s.Add(name, func() error { order = append(order, name); return err })
	}
	note("one", nil)
	note("two", errors.New("stuck"))
	note("three", nil)
	err := s.Run()
	if want := []string{"three", "two", "one"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot undo two: stuck") {
		t.Errorf("error %v does not name the step that failed", err)
	}
	if err := s.Run(); err != nil || len(order) != 3 {
		t.Errorf("a second Run did something: %v %v", err, order)
	}
}

func TestReleaseForgets(t *testing.T) {
	t.Parallel()
	var s Stack
	s.Add("one", func() error { t.Error("a released step ran"); return nil })
	s.Release()
	if err := s.Run(); err != nil {
		t.Error(err)
	}
}

func TestTakeMovesTheSteps(t *testing.T) {
	t.Parallel()
	var s Stack
	ran := 0
	s.Add("one", func() error { ran++; return nil })
	taken := s.Take()
	if err := s.Run(); err != nil || ran != 0 {
		t.Fatalf("the old stack still holds the step: %v, ran %d", err, ran)
	}
	if err := taken.Run(); err != nil || ran != 1 {
		t.Fatalf("the taken stack did not run the step: %v, ran %d", err, ran)
	}
}
