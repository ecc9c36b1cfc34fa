package rootfs

import (
	"slices"
	"testing"
)

func TestChosen(t *testing.T) {
	t.Parallel()
	changes := []Change{
		{Kind: Added, Path: "/w/a", Type: TypeDir}, {Kind: Added, Path: "/w/a/b", Type: TypeDir}, {Kind: Added, Path: "/w/a/b/x", Type: TypeFile},
		{Kind: Added, Path: "/w/a/y", Type: TypeFile}, {Kind: Changed, Path: "/w/ab", Type: TypeFile}, {Kind: Deleted, Path: "/w/d", Type: TypeDir},
		{Kind: Renamed, Path: "/w/s", From: "/w/d/sub", Type: TypeDir}, {Kind: Changed, Path: "/w/s/z", Type: TypeFile},
	}
	tests := []struct{ paths, want, missing []string }{
		{[]string{"/w/a/b/x"}, []string{"/w/a", "/w/a/b", "/w/a/b/x"}, nil},
		{[]string{"/w/a"}, []string{"/w/a", "/w/a/b", "/w/a/b/x", "/w/a/y"}, nil},
		{[]string{"/w/ab", "/w/none"}, []string{"/w/ab"}, []string{"/w/none"}},
		{[]string{"/w/d"}, []string{"/w/d", "/w/s"}, nil},
		{[]string{"/w/d/sub"}, []string{"/w/s"}, nil},
		{[]string{"/w/s/z"}, []string{"/w/s/z"}, nil},
		{[]string{"/w/s"}, []string{"/w/s", "/w/s/z"}, nil},
		{[]string{"/w"}, []string{"/w/a", "/w/a/b", "/w/a/b/x", "/w/a/y", "/w/ab", "/w/d", "/w/s", "/w/s/z"}, nil},
		{nil, nil, nil},
	}
	for _, tt := range tests {
		chosen, missing := Chosen(changes, tt.paths)
		var got []string
		for _, c := range chosen {
			got = append(got, c.Path)
		}
		if !slices.Equal(got, tt.want) || !slices.Equal(missing, tt.missing) {
			t.Errorf("%q: chose %q, missing %q", tt.paths, got, missing)
		}
	}
}
