package broker

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"

	"clove.run/clove/egress/wire"
)

// TestARequestThatNoHonestGateSendsEndsTheChannel: the counterpart is
// TestARequestThatAnAgentCanCause: unusual but honest requests are answered.
func TestARequestThatNoHonestGateSendsEndsTheChannel(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	public := at("93.184.216.34:80")
	for name, r := range map[string]wire.Request{
		"nothing":                       {ID: 1},
		"two parts":                     {ID: 1, Lookup: &wire.Lookup{Name: "a.test", Type: 1}, Open: &wire.Open{Target: public}},
		"a question without a number":   {Lookup: &wire.Lookup{Name: "a.test", Type: 1}},
		"a note with one":               {ID: 1, Closed: &wire.Closed{Number: 1}},
		"an endless name":               {ID: 1, Lookup: &wire.Lookup{Name: strings.Repeat("a", 2000), Type: 1}},
		"a zone transfer":               {ID: 1, Lookup: &wire.Lookup{Name: "a.test", Type: 252}},
		"type 0":                        {ID: 1, Lookup: &wire.Lookup{Name: "a.test"}},
		"no target":                     {ID: 1, Open: &wire.Open{}},
		"a zone":                        {ID: 1, Open: &wire.Open{Target: at("[fe80::1%eth0]:80")}},
		"a mapped address":              {ID: 1, Open: &wire.Open{Target: at("[::ffff:10.0.0.1]:80")}},
		"a name shown nowhere":          {ID: 1, Open: &wire.Open{Target: public, Name: "a.test"}},
		"a name with nothing shown":     {ID: 1, Open: &wire.Open{Target: public, Name: "a.test", Shown: wire.ShownNothing}},
		"no name shown":                 {ID: 1, Open: &wire.Open{Target: public, Shown: wire.ShownTLS}},
		"an unknown place":              {ID: 1, Open: &wire.Open{Target: public, Name: "a.test", Shown: "smtp"}},
		"a flow between families":       {ID: 1, Flow: &wire.Flow{Agent: at("[::1]:5"), Target: public}},
		"a flow from nowhere":           {ID: 1, Flow: &wire.Flow{Target: public}},
		"a port that is not published":  {ID: 1, Enter: &wire.Enter{Port: 22, Client: public}},
		"the end of what was not open":  {Closed: &wire.Closed{Number: 7}},
		"the end of nothing":            {Closed: &wire.Closed{}},
		"negative bytes":                {Closed: &wire.Closed{Number: 1, RxBytes: -1}},
		"more bytes than there are":     {Closed: &wire.Closed{Number: 1, TxBytes: math.MaxInt64}},
		"a reason of its own":           {Refused: &wire.Refused{Target: public, Reason: "because", Count: 1}},
		"no refusal at all":             {Refused: &wire.Refused{Target: public, Reason: wire.ReasonRate}},
		"endless refusals":              {Refused: &wire.Refused{Target: public, Reason: wire.ReasonRate, Count: mostRefusals + 1}},
		"no reason":                     {Refused: &wire.Refused{Target: public, Count: 1}},
		"a refusal with a zone":         {Refused: &wire.Refused{Target: at("[fe80::1%eth0]:80"), Reason: wire.ReasonRate, Count: 1}},
		"a refusal of an endless name":  {Refused: &wire.Refused{Name: strings.Repeat("a", 2000), Reason: wire.ReasonRate, Count: 1}},
		"a name that breaks the bounds": {ID: 1, Open: &wire.Open{Target: public, Name: strings.Repeat("a", 2000), Shown: wire.ShownTLS}},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
			f.gate.tell(r)
			var hostile *untrusted
			if err := f.result(); !errors.As(err, &hostile) {
				t.Errorf("Serve: %v", err)
			}
			<-f.gate.done // the channel is closed
			if d := f.last(); d.Kind != KindGate || d.Outcome != OutcomeHostile || d.Detail == "" {
				t.Errorf("decision %+v", d)
			}
		})
	}
}

func TestWhatIsNoMessageEndsTheChannel(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	f.gate.conn.SendAnswer(wire.Answer{ID: math.MaxUint64, Result: "x", Message: make([]byte, 10)}) // no field of a request
	var hostile *untrusted
	if err := f.result(); !errors.As(err, &hostile) {
		t.Errorf("Serve: %v", err)
	}
}

// TestARequestThatAnAgentCanCause: it is answered or noted, and the channel stays.
func TestARequestThatAnAgentCanCause(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	for _, r := range []wire.Request{
		{Lookup: &wire.Lookup{Name: "", Type: 2}},
		{Lookup: &wire.Lookup{Name: `a\000b.test`, Type: 1}},
		{Lookup: &wire.Lookup{Name: strings.Repeat(`\200`, 250), Type: 65535}},
		{Open: &wire.Open{Target: at("93.184.216.34:0")}},
		{Open: &wire.Open{Target: at("93.184.216.34:80"), Name: "..", Shown: wire.ShownHTTP}},
		{Open: &wire.Open{Target: at("[fe80::1]:80")}},
		{Open: &wire.Open{Target: at("0.0.0.0:80")}},
		{Flow: &wire.Flow{Agent: at("127.0.0.1:5"), Target: at("224.0.0.1:5")}},
	} {
		if answer := f.gate.ask(r); answer.Result != wire.ResultDenied {
			t.Errorf("%+v: %+v", r, answer)
		}
	}
	f.gate.tell(wire.Request{Ready: &wire.Ready{}})
	f.gate.tell(wire.Request{Ready: &wire.Ready{}})
	<-f.broker.Ready()
	for reason := range refusals {
		f.gate.tell(wire.Request{Refused: &wire.Refused{Target: at("93.184.216.34:443"), Name: "A.test", UDP: reason == wire.ReasonRate, Reason: reason, Count: 1}})
	}
	f.gate.lookup("localhost", 1)
	kinds := map[Kind]int{}
	for _, d := range f.log() {
		if d.Name == "a.test" {
			kinds[d.Kind]++
		}
	}
	if kinds[KindUDP] != 1 || kinds[KindDNS] != 1 || kinds[KindOther] != 1 || kinds[KindTCP] != len(refusals)-3 {
		t.Errorf("noted %v", kinds)
	}
}
