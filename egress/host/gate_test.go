package host

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress/broker"
)

func TestADenialSaysWhichRuleOrWhy(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, d := range map[string]broker.Denial{
		"10.0.0.0/8":     {Time: at, Kind: broker.KindTCP, Target: "10.1.2.3:80", Rule: "10.0.0.0/8", Reason: "denied", Count: 3},
		"nothing allows": {Time: at, Kind: broker.KindTCP, Target: "10.1.2.3:80", Reason: "nothing allows", Count: 3},
	} {
		got := Denial(d)
		if got != (agent.Denial{Time: at, Kind: "network", Target: "tcp://10.1.2.3:80", Rule: want, Count: 3}) {
			t.Errorf("%+v", got)
		}
	}
}
