package agent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// sizeUnits are powers of 1024, as in docker.
var sizeUnits = map[string]int{"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}

// ParseSize parses a number of bytes from 0 to SizeCeiling: a decimal number, possibly with
// a fraction, and a unit as docker writes it (256M, 256MB) or Kubernetes (256Mi, 256MiB).
// All units are powers of 1024. Flags, annotations and configuration files use it.
func ParseSize(text string) (int64, error) {
	end := strings.IndexFunc(text, func(c rune) bool { return c != '.' && (c < '0' || c > '9') })
	if end < 0 {
		end = len(text)
	}
	unit := strings.TrimPrefix(strings.ToLower(text[end:]), " ")
	// 256mb and 256mib lose their b. A lone "ib" keeps it, so that it is no unit.
	if long := strings.TrimSuffix(unit, "b"); len(long) != 1 || long != "i" {
		unit = long
	}
	if short, binary := strings.CutSuffix(unit, "i"); binary && short != "" {
		unit = short
	}
	shift, known := sizeUnits[unit]
	number, err := strconv.ParseFloat(text[:end], 64)
	bytes := math.Ldexp(number, shift)
	switch {
	case err != nil || !known:
		return 0, wrongSize("%.64q is not a size", text)
	case bytes > SizeCeiling:
		return 0, wrongSize("%.64q is too large", text)
	}
	return int64(bytes), nil
}

func wrongSize(format, text string) error {
	return &Error{Kind: KindInvalid, Message: fmt.Sprintf(format, text), Hint: "write a number and a unit, for example 512K, 256M or 1.5G"}
}
