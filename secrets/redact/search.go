package redact

import (
	"hash/maphash"
	mathbits "math/bits"
	"math/rand/v2"
)

// rolling looks for forms that are written with one alphabet. A rolling hash of as many characters as the shortest one has is the
// same work for each character, whatever the text is.
type rolling struct {
	forms  []form
	n      int         // characters in the hash
	hashes [3]uint64   // of the forms; where there are fewer, the last one again
	in     [256]uint64 // what a character adds to the hash when it comes, and
	out    [256]uint64 // when n more have come
}

// newRolling looks for forms of one alphabet, of about the same length.
func newRolling(forms ...form) *rolling {
	s := &rolling{forms: forms, n: len(forms[0].values)}
	for _, f := range forms {
		s.n = min(s.n, len(f.values))
	}
	var terms [256]uint64 // by values
	for v := range terms {
		terms[v] = rand.Uint64()
	}
	for c, v := range forms[0].alphabet {
		s.in[c], s.out[c] = terms[v], mathbits.RotateLeft64(terms[v], s.n)
	}
	for i := range s.hashes {
		for _, v := range forms[min(i, len(forms)-1)].values[:s.n] {
			s.hashes[i] = mathbits.RotateLeft64(s.hashes[i], 1) ^ terms[v]
		}
	}
	return s
}

func (s *rolling) find(text []byte) (all []Span) {
	if len(text) < s.n {
		return nil
	}
	hash := uint64(0)
	for _, c := range text[:s.n] {
		hash = mathbits.RotateLeft64(hash, 1) ^ s.in[c]
	}
	all = s.checked(all, text, 0, hash)
	first, second, third := s.hashes[0], s.hashes[1], s.hashes[2]
	rest := text[s.n:]
	gone := text[:len(rest)]
	for i, c := range rest {
		hash = mathbits.RotateLeft64(hash, 1) ^ (s.in[c] ^ s.out[gone[i]])
		if hash == first || hash == second || hash == third {
			all = s.checked(all, text, i+1, hash)
		}
	}
	return all
}

// checked adds the forms that have a hash and are at a place of a text.
func (s *rolling) checked(all []Span, text []byte, from int, hash uint64) []Span {
	for i := range s.forms {
		if hash == s.hashes[i] {
			if m, ok := s.forms[i].at(text, from); ok {
				all = append(all, m)
			}
		}
	}
	return all
}

const (
	// longLeast is the shortest value that is looked for in blocks.
	longLeast = 24
	blockMost = 64 // characters of a block
)

// blocks looks for the forms of a long value: one that is in a text has a whole block in it, wherever it begins. Each block is hashed
// once, which is the same work whatever its characters are; only one of a form is compared. So the time shows only to an agent that knows
// as much as a block that this is right: of a value of 24 characters 17, of 40 25, of 80 and more 64.
type blocks struct {
	length int // characters of a block
	stride int // characters between the beginnings of blocks
	seed   maphash.Seed
	filter [1 << 10]uint64 // has a bit for each hash in parts, by its lowest bits
	parts  map[uint64][]part
}

// part is a block of a form, which begins so many characters behind the form's own beginning.
type part struct {
	form   *form
	behind int
}

func newBlocks(own form, encoded []form) *blocks {
	stride := 8
	if len(own.values) >= 40 {
		stride = 16
	}
	s := &blocks{length: min(len(own.values)-stride+1, blockMost), stride: stride, seed: maphash.MakeSeed(), parts: map[uint64][]part{}}
	s.add(&own, own.values)
	for i := range encoded {
		for _, encoding := range encodings {
			text := make([]byte, len(encoded[i].values))
			for j, value := range encoded[i].values {
				text[j] = encoding.EncodeToString([]byte{value << 2})[0]
			}
			s.add(&encoded[i], text)
		}
	}
	return s
}

// add adds a form as it is written.
func (s *blocks) add(f *form, text []byte) {
	for behind := range s.stride {
		hash := maphash.Bytes(s.seed, text[behind:behind+s.length])
		s.filter[hash/64%uint64(len(s.filter))] |= 1 << (hash % 64)
		s.parts[hash] = append(s.parts[hash], part{f, behind})
	}
}

func (s *blocks) find(text []byte) (all []Span) {
	for i := 0; i+s.length <= len(text); i += s.stride {
		hash := maphash.Bytes(s.seed, text[i:i+s.length])
		if s.filter[hash/64%uint64(len(s.filter))]&(1<<(hash%64)) == 0 {
			continue
		}
		for _, p := range s.parts[hash] {
			if m, ok := p.form.at(text, i-p.behind); ok {
				all = append(all, m)
			}
		}
	}
	return all
}
