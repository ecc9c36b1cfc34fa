package advice

import (
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"

	"clove.run/clove/agent"
)

// OfShadow is the line of a shadow's document with which its limit would have been enough, just.
func OfShadow(l agent.ShadowLimit) string {
	dimension, isBudget := strings.CutPrefix(l.Place, "budgets.")
	switch {
	case isBudget:
		return "budgets: [" + dimension + "=" + strconv.FormatInt(l.Peak, 10) + "]"
	case l.Place == "on_denial":
		return "on_denial: deny"
	}
	return l.Place + ": " + enough(l)
}

// enough is a value at or above the peak, as a document has it.
func enough(l agent.ShadowLimit) string {
	switch unitOf(l.Place) {
	case unitBytes:
		return strconv.FormatInt((l.Peak+1<<20-1)>>20, 10) + "M"
	case unitClock:
		return strconv.FormatInt((l.Peak+999)/1000, 10) + "s"
	}
	return strconv.FormatInt(l.Peak, 10)
}

const (
	unitBytes = "bytes"
	unitClock = "ms"
)

func unitOf(place string) string {
	switch place {
	case "limits.memory", "limits.output", "limits.disk", "network.bytes", "budgets.write_bytes", "budgets.net_bytes":
		return unitBytes
	case "limits.cpu_time", "limits.timeout", "budgets.cpu_ms", "budgets.wall_ms":
		return unitClock
	}
	return ""
}

// ShadowUnit is a figure of a shadow's limit for people.
func ShadowUnit(place string, n int64) string {
	switch unitOf(place) {
	case unitBytes:
		return units.BytesSize(float64(n))
	case unitClock:
		return (time.Duration(n) * time.Millisecond).String()
	}
	return strconv.FormatInt(n, 10)
}
