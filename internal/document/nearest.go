package document

// Meant is a hint that names what was probably meant; otherwise it is the other text.
func Meant(word string, known []string, otherwise string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// Nearest returns the known word with the fewest changes of a letter, the first of several;
// none if more than a third of the letters differ. Two differences are always allowed, as in
// a short word each is more than a third.
func Nearest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if len(word) > longestName || len(k) > longestName {
			continue // the time is the product of the lengths
		}
		if d := distance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// longestName bounds the words that are compared.
const longestName = 128

// distance counts the bytes to insert, remove or replace (Levenshtein), with one row of the
// table.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
