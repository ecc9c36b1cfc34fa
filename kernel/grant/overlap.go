package grant

// Overlaps reports whether there may be something that both scopes are for, whatever their rights. It
// is never wrong where it reports false, but for targets of the network: of those it compares which
// covers which.
func (s Scope) Overlaps(other Scope) bool {
	g := s.kind.grammar()
	if g == nil || s.kind != other.kind {
		return false
	}
	if g.concrete != nil && s.kind != Net {
		return globsMeet(s.pattern, other.pattern)
	}
	return g.covers(s, other) || g.covers(other, s)
}

// globsMeet reports whether a name matches both patterns. The time is at most the product of the
// lengths.
func globsMeet(a, b string) bool {
	meet := make([]bool, len(b)+1) // of the rests of a and b from each place in b on
	for i := len(a); i >= 0; i-- {
		below := meet // of the rest of a behind i
		meet = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				meet[j] = true
			case i < len(a) && a[i] == '*':
				meet[j] = below[j] || j < len(b) && meet[j+1]
			case j < len(b) && b[j] == '*':
				meet[j] = meet[j+1] || i < len(a) && below[j]
			case i < len(a) && j < len(b):
				meet[j] = a[i] == b[j] && below[j+1]
			}
		}
	}
	return meet[0]
}
