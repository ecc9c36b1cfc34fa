package broker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// whatShadow is what was counted, in words.
func whatShadow(all []Denial) (words []string) {
	for _, d := range all {
		words = append(words, fmt.Sprintf("%s %s %d", d.Kind, d.Target, d.Count))
	}
	slices.Sort(words)
	return words
}

// The shadow counts what it would have refused of what is allowed, and nothing else. The control
// is the same broker without a shadow, which counts nothing.
func TestAShadowCountsAndRefusesNothing(t *testing.T) {
	t.Parallel()
	own := rulesOf(t, "api.example.com", "db.example.com:5432", "93.184.216.36:80", "udp://93.184.216.34:53", "intern.example.com", "10.0.0.1")
	strict := rulesOf(t, "api.example.com", "intern.example.com", "deny db.example.com")
	for _, row := range []struct {
		shadow *egress.Rules
		want   []string
	}{
		{nil, nil},
		{own, nil},
		{strict, []string{"dns db.example.com 2", "dns intern.example.com 1", "tcp 93.184.216.36:80 3", "udp 93.184.216.34:53 1"}},
	} {
		f := serve(t, Config{Rules: own, Shadow: row.shadow})
		f.resolver.set("api.example.com", "93.184.216.34")
		f.resolver.set("db.example.com", "93.184.216.35")
		f.resolver.set("intern.example.com", "10.0.0.1")
		f.leadsTo("93.184.216.34:443")
		f.leadsTo("93.184.216.35:5432")
		f.leadsTo("93.184.216.36:80")
		f.datagramServer("93.184.216.34:53")
		for _, name := range []string{"api.example.com", "db.example.com", "db.example.com", "intern.example.com"} {
			if answer := f.gate.lookup(name, dnsmsg.TypeA); answer.Result != wire.ResultAllowed {
				t.Errorf("%s: %+v", name, answer)
			}
		}
		f.gate.connected("93.184.216.34:443", "api.example.com")
		f.gate.connected("93.184.216.35:5432", "") // it follows from the name
		for range 3 {
			f.gate.connected("93.184.216.36:80", "")
		}
		if answer := f.gate.flow("93.184.216.34:53"); answer.Result != wire.ResultAllowed {
			t.Errorf("%+v", answer)
		}
		if answer := f.gate.open("93.184.216.99:80", ""); answer.Result != wire.ResultDenied { // by both
			t.Errorf("%+v", answer)
		}
		totals := f.broker.Totals()
		if got := whatShadow(totals.Shadow); !slices.Equal(got, row.want) {
			t.Errorf("%q; want %q", got, row.want)
		}
		f.mu.Lock()
		told := slices.Clone(f.told)
		f.mu.Unlock()
		if totals.Refused != 1 || len(told) != 1 {
			t.Errorf("%+v, told %+v", totals, told)
		}
	}
}

// Other rules of the shadow hold from then on.
func TestAShadowIsReplaced(t *testing.T) {
	t.Parallel()
	own := rulesOf(t, "93.184.216.36:80")
	f := serve(t, Config{Rules: own, Shadow: rulesOf(t)})
	f.leadsTo("93.184.216.36:80")
	f.gate.connected("93.184.216.36:80", "")
	f.broker.ReplaceShadow(own)
	f.gate.connected("93.184.216.36:80", "")
	if got := whatShadow(f.broker.Totals().Shadow); !slices.Equal(got, []string{"tcp 93.184.216.36:80 1"}) {
		t.Errorf("%q", got)
	}
}

// visit is one thing that an agent does: it looks a name up, and connects to an address that it
// got for the name, or to one that it knows.
type visit struct {
	name, address string
	port          int
	udp           bool
}

var shadowNames = map[string]string{"a.example.com": "93.184.216.34", "b.example.com": "93.184.216.35", "c.example.org": "93.184.216.34", "d.example.org": "10.0.0.7"}

// shadowAddresses are those that the agent knows without a name.
var shadowAddresses = []string{"93.184.216.36", "10.0.0.8"}

func randomVisit(r *rand.Rand) visit {
	v := visit{port: []int{80, 443, 5432}[r.IntN(3)], udp: r.IntN(5) == 0}
	names := []string{"a.example.com", "b.example.com", "c.example.org", "d.example.org"}
	if v.name = names[r.IntN(4)]; r.IntN(4) == 0 {
		v.name, v.address = "", shadowAddresses[r.IntN(2)]
	}
	return v
}

func randomRules(t *testing.T, r *rand.Rand) *egress.Rules {
	var lines []string
	for _, line := range []string{"a.example.com", "*.example.org", "b.example.com:5432", "93.184.216.34:5432", "10.0.0.7", "10.0.0.8:5432", "93.184.216.35", "93.184.216.36", "udp://93.184.216.34:443",
		"deny c.example.org", "deny 10.0.0.0/8", "deny 93.184.216.35:80", "public:*", "a.example.com:5432"} {
		if r.IntN(3) == 0 {
			lines = append(lines, line)
		}
	}
	return rulesOf(t, lines...)
}

// do is what the gate asks for a visit, up to the first refusal. The client shows the name that
// it looked up.
func (f *fixture) do(v visit) (answers []wire.Answer) {
	address := v.address
	if v.name != "" {
		answers = append(answers, f.gate.lookup(v.name, dnsmsg.TypeA))
		if answers[0].Result != wire.ResultAllowed {
			return answers
		}
		address = shadowNames[v.name]
	}
	target := fmt.Sprintf("%s:%d", address, v.port)
	if v.udp {
		return append(answers, f.gate.flow(target))
	}
	answer := f.gate.open(target, "")
	if answer.Result == wire.ResultVerify || answer.Result == wire.ResultVerifyDeny {
		o := wire.Open{Target: netip.MustParseAddrPort(target), Name: v.name, Shown: wire.ShownTLS}
		if v.name == "" {
			o.Shown = wire.ShownNothing
		}
		answer = f.gate.ask(wire.Request{Open: &o})
	}
	return append(answers, answer)
}

// shown is what a gate sees of answers, and what is logged, without what every socket changes.
func shown(answers []wire.Answer) (texts []string) {
	for _, a := range answers {
		closeFiles(a.Files)
		texts = append(texts, fmt.Sprint(a.Result, a.Rule, a.Hint, a.Number, len(a.Files)))
	}
	return texts
}

// world makes every address the one server: with many servers this test would have taken the ports
// of others'.
func (f *fixture) world(server string) {
	for name, address := range shadowNames {
		f.resolver.set(name, address)
	}
	for _, address := range slices.Concat(slices.Collect(maps.Values(shadowNames)), shadowAddresses) {
		for _, port := range []int{80, 443, 5432} {
			f.network.lead(netip.MustParseAddrPort(fmt.Sprintf("%s:%d", address, port)), server)
		}
	}
}

// Random rules with a random shadow: every answer and every line of the log is the same as
// without the shadow, and under the shadow's rules exactly what it counted is refused.
func TestAShadowChangesNoDecision(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0") // its backlog is enough, nothing accepts
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	counted := 0
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(16, uint64(round)))
		own, strict := randomRules(t, r), randomRules(t, r)
		plain, watched, under := serve(t, Config{Rules: own}), serve(t, Config{Rules: own, Shadow: strict}), serve(t, Config{Rules: strict})
		for _, f := range []*fixture{plain, watched, under} {
			f.world(server.Addr().String())
		}
		for range 12 {
			v := randomVisit(r)
			a, b := plain.do(v), watched.do(v)
			if !reflect.DeepEqual(shown(a), shown(b)) {
				t.Fatalf("round %d, %+v: %v without the shadow, %v with it", round, v, a, b)
			}
			if slices.ContainsFunc(b, func(a wire.Answer) bool { return a.Result == wire.ResultDenied }) {
				if len(b) > 1 { // the look-up was allowed; what came then the shadow is not asked
					under.gate.lookup(v.name, dnsmsg.TypeA)
				}
				continue
			}
			shown(under.do(v))
		}
		if !reflect.DeepEqual(plain.log(), watched.log()) {
			t.Fatalf("round %d: the logs differ:\n%+v\n%+v", round, plain.log(), watched.log())
		}
		got, want := watched.broker.Totals().Shadow, under.broker.Totals().Denials
		if !slices.Equal(whatShadow(got), whatShadow(want)) {
			t.Fatalf("round %d: the shadow counted\n%s\nand as the run's own rules it refused\n%s", round,
				strings.Join(whatShadow(got), "\n"), strings.Join(whatShadow(want), "\n"))
		}
		counted += len(got)
	}
	if counted == 0 {
		t.Error("no shadow refused anything")
	}
}

// BenchmarkShadow is BenchmarkOpen with a shadow that refuses, to be compared with it.
func BenchmarkShadow(b *testing.B) {
	strict, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: []agent.EgressRule{{Target: "api.example.com"}, {Deny: true, Target: "*.example.net"}}})
	if err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name   string
		shadow *egress.Rules
	}{{"without", nil}, {"with", strict}} {
		b.Run(row.name, func(b *testing.B) {
			f := serve(b, Config{Rules: rulesOf(b, "db.example.com:5432", "93.184.216.34:5432"), Shadow: row.shadow})
			f.broker.config.Log = nil
			servers := f.leadsTo("93.184.216.34:5432")
			for b.Loop() {
				answer := f.gate.open("93.184.216.34:5432", "")
				closeFiles(answer.Files)
				f.gate.tell(wire.Request{Closed: &wire.Closed{Number: answer.Number}})
				(<-servers).Close()
			}
		})
	}
}
