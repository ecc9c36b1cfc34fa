package verbs

import (
	"fmt"
	"reflect"
	"testing"
)

type row struct {
	ID     string `col:"ID"`
	Hidden string
	Limit  *int     `col:"LIMIT"`
	Uses   *int     `col:"USES,any"`
	Owner  uint32   `col:"OWNER"`
	Peak   *int     `col:"PEAK,dozens"`
	Models []string `col:"MODELS"`
	Warned bool     `col:"STATE,warned"`
	Spent  bool     `col:"STATE,spent"`
	Reason string   `col:"REASON,,cut"`
	Rule   string   `col:"REASON,,cut"`
}

func TestRows(t *testing.T) {
	t.Parallel()
	forms := Forms{"dozens": func(value any) string { return fmt.Sprintf("%d0", value) }}
	five := 5
	rows, cut := Rows([]row{{ID: "a", Owner: 1000, Models: []string{"x", "y"}, Warned: true, Spent: true, Reason: "why"},
		{ID: "b", Limit: &five, Uses: &five, Peak: &five, Warned: true, Rule: "--allow"}}, forms, nil)
	want := [][]string{{"ID", "LIMIT", "USES", "OWNER", "PEAK", "MODELS", "STATE", "REASON"}, {"a", "-", "any", "1000", "-", "x,y", "spent", "why"}, {"b", "5", "5", "0", "50", "", "warned", "--allow"}}
	if !reflect.DeepEqual(rows, want) || !reflect.DeepEqual(cut, []int{7}) {
		t.Errorf("%q, %v", rows, cut)
	}
	if rows, cut = Rows([]row{{ID: "a", Reason: "why"}}, nil, []string{"ID"}); !reflect.DeepEqual(rows, [][]string{{"ID"}, {"a"}}) || cut != nil {
		t.Errorf("%q, %v", rows, cut)
	}
	order := []string{"REASON", "STATE", "MODELS", "PEAK", "OWNER", "USES", "LIMIT", "ID"}
	if rows, cut = Rows([]row{}, nil, order); !reflect.DeepEqual(rows, [][]string{order}) || !reflect.DeepEqual(cut, []int{0}) {
		t.Errorf("%q, %v", rows, cut)
	}
}

func TestHeadings(t *testing.T) {
	t.Parallel()
	type view struct {
		Name  string `col:"NAME"`
		Other string
		Price string `col:"MAX PRICE"`
	}
	if got := Headings[view](); got != (view{"NAME", "", "MAX PRICE"}) {
		t.Errorf("%+v", got)
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	type list struct{ Items []string }
	type part struct {
		Items []string
		Next  string
	}
	type two struct{ A, B int }
	for _, c := range []struct{ result, want any }{
		{list{}, []string{}}, {part{Items: []string{"a"}, Next: "b"}, []string{"a"}}, {two{1, 2}, two{1, 2}}, {[]int(nil), []int{}}, {struct{}{}, struct{}{}},
	} {
		if got := Content(c.result); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#v: %#v", c.result, got)
		}
	}
}
