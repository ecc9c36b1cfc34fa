package agent

import (
	"strings"
	"testing"
)

func TestParseRunName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]RunName{
		"web": {1000, "web"}, "1000/web": {1000, "web"}, "0/web": {0, "web"}, "1001/oci+abc": {1001, "oci+abc"}, "4294967294/web": {4294967294, "web"}, "7": {1000, "7"},
	} {
		if got, err := ParseRunName(text, 1000); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"/", "/web", "1000/", "alice/web", "01000/web", "+1/web", "-1/web", "1000/web/", "1000//web", " 1/web", "4294967296/web", "1000/a/b"} {
		_, err := ParseRunName(text, 1000)
		if failure := FailureOf(err); KindOf(err) != KindInvalid || err == nil || !strings.Contains(failure.Hint, "UID/NAME") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The bare form is for one's own runs, and the printed form means the same run when it is read
// back.
func TestRunNameForm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name RunName
		uid  uint32
		want string
	}{{RunName{0, "web"}, 0, "web"}, {RunName{1000, "web"}, 0, "1000/web"}, {RunName{1000, "web"}, 1000, "web"}, {RunName{0, "web"}, 1000, "0/web"}} {
		got := c.name.For(c.uid)
		if back, err := ParseRunName(got, c.uid); got != c.want || err != nil || back != c.name {
			t.Errorf("%+v for %d: %q, which means %+v, %v", c.name, c.uid, got, back, err)
		}
	}
	if ValidateName("1000/web") == nil {
		t.Error("a name may look like another owner's")
	}
}

func TestAfterNames(t *testing.T) {
	t.Parallel()
	run := Run{Owner: Owner{UID: 1000}, Spec: Spec{After: []string{"first", "1001/second", "a/b"}}}
	names := run.AfterNames()
	if len(names) != 3 || names[0] != (RunName{1000, "first"}) || names[1] != (RunName{1001, "second"}) || names[2] != (RunName{1000, "a/b"}) {
		t.Errorf("%+v", names)
	}
}
