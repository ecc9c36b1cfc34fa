package audit

import (
	"slices"
	"testing"
)

// Parts that are asked for one after the other are all that the filter chooses, also where a
// part ends because it looked at enough.
func TestPagesAreTheWhole(t *testing.T) {
	t.Parallel()
	dir := sampleLog(t, 1500)
	if segments, err := segmentsOf(dir); err != nil || len(segments) < 2 {
		t.Fatalf("control: %d segments, %v", len(segments), err)
	}
	for _, filter := range []Filter{{}, {Text: "7"}, {Text: "nothing"}, {After: 1499}, {After: 4000}} {
		var want, got []uint64
		must(t, Query(dir, filter, func(e Entry) error { want = append(want, e.Number); return nil }))
		for parts := 0; ; parts++ {
			page, err := ReadPage(dir, filter, 70, 200)
			must(t, err)
			if len(page.Entries) > 70 || parts > 100 {
				t.Fatalf("%d records, %d parts", len(page.Entries), parts)
			}
			for _, e := range page.Entries {
				got = append(got, e.Number)
			}
			if page.Next == 0 {
				break
			}
			filter.After = page.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %d records, want %d", filter, len(got), len(want))
		}
	}
}
