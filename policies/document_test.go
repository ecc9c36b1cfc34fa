package policies

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

const first = "version: 1\nname: a\n"

func parsed(t testing.TB, text string) Document {
	t.Helper()
	d, err := Parse([]byte(first + text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestMistakesOfADocument(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "it names no version",
		"version: 2\nname: a":                    "it has version 2",
		"version: 1\nname: a b":                  "no name of a policy",
		"version: 1":                             "no name of a policy",
		first + "limits: 3":                      "line 3, column 9: limits: the number stands where a map of keys belongs",
		first + "network: {host_ports: [70000]}": "whole number",
		first + "widen: {network: \"a\\nb\"}":    "the reason is no such line",
		first + "widen: {network: ''}":           "the reason is empty",
		strings.Repeat("#", MostBytes+1):         "bytes",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// The settings of a document replace those that it extends, key by key; deny, drop and keys of maps are
// added.
func TestOver(t *testing.T) {
	t.Parallel()
	base := parsed(t, "limits: {memory: 1G, memory_swap: 2G, pids: 9}\nulimits: {core: 0, nofile: 1}\nnetwork: {mode: public, allow: [a], deny: [b], dns: [9.9.9.9], host_ports: [80]}\n"+
		"capabilities: {drop: [CHOWN]}\nenvironment: {set: {A: 1x, B: 2x}, pass: [P]}\nbudgets: [tokens=1, calls=2]\nfiles: {root: read-only, writable: [/tmp], execute: [/bin/sh, /bin/ls], read: [/usr, /etc]}\n")
	over := parsed(t, "extends: x\nlimits: {memory: 2G}\nulimits: {nofile: 2}\nnetwork: {allow: [c], deny: [d]}\ncapabilities: {drop: [KILL]}\n"+
		"environment: {set: {B: 3x}, pass: [Q]}\nbudgets: [tokens=3]\nfiles: {execute: [/bin/ls], read: [/usr]}\n").Over(base)
	want := parsed(t, "extends: x\nlimits: {memory: 2G, pids: 9}\nulimits: {core: 0, nofile: 2}\nnetwork: {mode: public, allow: [c], deny: [b, d], dns: [9.9.9.9], host_ports: [80]}\n"+
		"capabilities: {drop: [CHOWN, KILL]}\nenvironment: {set: {A: 1x, B: 3x}, pass: [P, Q]}\nbudgets: [tokens=3, calls=2]\nfiles: {root: read-only, writable: [/tmp], execute: [/bin/ls], read: [/usr]}\n")
	if !reflect.DeepEqual(over, want) {
		t.Errorf("\n%+v\n%+v", over, want)
	}
	if !slices.Equal(base.Values[settings.Deny], []string{"b"}) || !slices.Contains(base.Values[settings.Ulimit], "nofile=1") {
		t.Errorf("the base changed: %+v", base)
	}
	// A denied target stays denied, also beyond a document without a network.
	if again := parsed(t, "network: {mode: public}\n").Over(parsed(t, "network: {mode: none}\n").Over(base)); !slices.Equal(again.Values[settings.Deny], []string{"b"}) {
		t.Errorf("%+v", again)
	}
	// An empty list is a list, and a mode without a network has no rules.
	if none := parsed(t, "network: {allow: []}\n").Over(base); !none.Has(settings.Allow) || len(none.Values[settings.Allow]) != 0 {
		t.Errorf("%+v", none)
	}
	if none := parsed(t, "network: {mode: none}\nfiles: {root: writable}\n").Over(base); none.Has(settings.Allow) || none.Has(settings.HostPort) || none.Has(settings.DNS) || none.Has(settings.Writable) || none.Has(settings.Execute) {
		t.Errorf("%+v", none)
	}
}

func TestNamesAndReasons(t *testing.T) {
	t.Parallel()
	d := parsed(t, "limits: {memory: 1}\nulimits: {nofile: 1}\nwiden: {network: x, limits.memory: y, ulimits.core: z}\n")
	for place, want := range map[string]bool{"limits": true, "limits.memory": true, "limits.pids": false, "ulimits.nofile": true, "ulimits.core": false, "network": false,
		"network.mode": false, "nothing.at.all": false} {
		if d.Names(place) != want {
			t.Errorf("%s: %v", place, !want)
		}
	}
	for place, want := range map[string]string{"network.mode": "x", "network": "x", "limits.memory": "y", "limits.pids": "", "ulimits.core": "z", "user": ""} {
		if got := d.Reason(place); got != want {
			t.Errorf("%s: %q", place, got)
		}
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	d := parsed(t, "description: x\nwiden: {network: y}\nlimits: {memory: 1G, cpus: 0.5}\nulimits: {nofile: 2, core: 0}\nnetwork: {host_ports: [80, 81], allow: []}\n"+
		"environment: {set: {A: a}, pass: [B, C]}\nagent_socket: false\nuser: root\n")
	want := []Value{{"limits.memory", "1G"}, {"limits.cpus", "0.5"}, {"ulimits.core", "0"}, {"ulimits.nofile", "2"}, {"user", "root"}, {"environment.set.A", "a"},
		{"environment.pass", "B, C"}, {"network.allow", ""}, {"network.host_ports", "80, 81"}, {"agent_socket", "false"}}
	if got := d.Written(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The schema knows every key, and needs those that Parse does.
func TestSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]struct {
			Type        any
			Description string
			Properties  map[string]struct{ Description string }
		}
		Required             []string
		AdditionalProperties any
	}
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.AdditionalProperties != false || !slices.Equal(schema.Required, []string{"version", "name"}) {
		t.Errorf("%+v", schema)
	}
	for _, key := range keys() {
		at, inner, nested := strings.Cut(key, ".")
		property, found := schema.Properties[at]
		if !found || property.Description == "" || nested && property.Properties[inner].Description == "" {
			t.Errorf("%s: %v, %+v", key, found, property)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Levels {
		text, _ := Level(name)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			if agent.KindOf(err) != agent.KindInvalid {
				t.Fatalf("%v", err)
			}
			return
		}
		standard, _ := Level(StandardName)
		base, err := Parse(standard)
		if err != nil {
			t.Fatal(err)
		}
		// A document still names its settings when it is over another.
		merged := d.Over(base)
		for _, key := range keys() {
			if d.Names(key) && !merged.Names(key) {
				t.Fatalf("%s is lost", key)
			}
		}
	})
}
