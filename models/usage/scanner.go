package usage

// Bounds of a scanner.
const (
	maxDepth   = 64  // arrays and objects inside each other; what is deeper is a fault
	maxPath    = 256 // bytes of a path
	maxName    = 48  // bytes of a name in a path
	maxLiteral = 128 // bytes of a value that is reported
)

// handler gets what a scanner finds. Paths are names joined by dots, with [] for elements
// of arrays: choices.[].delta.content. Paths and values are valid during the call only.
type handler interface {
	enter(path []byte)                           // an object begins
	leave(path []byte)                           // it has ended
	value(path []byte, literal []byte, str bool) // a string, cut at maxLiteral, or a number or word
	counts(path []byte) bool                     // whether a string is text that the model wrote
}

type step byte

const (
	wantValue step = iota
	wantNameOrEnd
	wantName
	wantColon
	wantMore // a comma or the end
	inName
	inString
	inWord // a number, true, false or null
	ended
	broken
)

// scanner goes through one JSON value whose bytes come in pieces.
type scanner struct {
	to      handler
	text    int64 // bytes of strings that counts, all values together
	step    step
	depth   int
	stack   [maxDepth]frame
	path    [maxPath]byte
	length  int // of path
	literal [maxLiteral]byte
	size    int  // of literal
	escape  int  // 1: behind a backslash; 2 to 5: in \uXXXX
	count   bool // the string is text
	first   bool // an array has no element yet
}

type frame struct {
	array  bool
	length int // of the path outside
}

func (s *scanner) reset() { s.step, s.depth, s.length, s.size, s.escape = wantValue, 0, 0, 0, 0 }

// began reports whether anything but space has come since reset.
func (s *scanner) began() bool { return s.step != wantValue || s.depth > 0 }

func (s *scanner) feed(p []byte) {
	for i := 0; i < len(p); i++ {
		b := p[i]
		switch s.step {
		case inString, inName:
			if s.escape == 0 {
				n := plain(p[i:])
				s.run(p[i : i+n])
				if i += n; i == len(p) {
					return
				}
			}
			s.inText(p[i])
			continue
		case inWord:
			if !delimits(b) {
				s.keep(b)
				continue
			}
			s.word()
		case broken:
			return
		}
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			s.structure(b)
		}
	}
}

func delimits(b byte) bool {
	switch b {
	case ' ', '\t', '\n', '\r', ',', '}', ']', ':', '"', '{', '[':
		return true
	}
	return false
}

// structure takes a byte outside of strings, numbers and words.
func (s *scanner) structure(b byte) {
	switch {
	case s.step == wantValue:
		s.begin(b)
	case b == '"' && (s.step == wantName || s.step == wantNameOrEnd):
		s.step, s.size = inName, 0
	case b == '}' && s.step == wantNameOrEnd:
		s.close(false)
	case b == ':' && s.step == wantColon:
		s.step = wantValue
	case b == ',' && s.step == wantMore:
		s.next()
	case (b == '}' || b == ']') && s.step == wantMore:
		s.close(b == ']')
	default:
		s.step = broken
	}
}

func (s *scanner) begin(b byte) {
	switch b {
	case '{', '[':
		s.open(b == '[')
	case ']':
		if s.depth > 0 && s.top().array && s.first {
			s.close(true)
			return
		}
		s.step = broken
	case '"':
		s.step, s.size = inString, 0
		s.count = s.to.counts(s.path[:s.length])
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
		s.step, s.size = inWord, 0
		s.keep(b)
	default:
		s.step = broken
	}
	if b != '[' {
		s.first = false
	}
}

func (s *scanner) top() *frame { return &s.stack[s.depth-1] }

func (s *scanner) open(array bool) {
	if s.depth == maxDepth {
		s.step = broken
		return
	}
	s.stack[s.depth] = frame{array, s.length}
	s.depth++
	if array {
		s.enterName([]byte("[]"))
		s.step, s.first = wantValue, true
		return
	}
	s.to.enter(s.path[:s.length])
	s.step = wantNameOrEnd
}

func (s *scanner) close(array bool) {
	f := s.top()
	if f.array != array {
		s.step = broken
		return
	}
	s.length = f.length
	s.depth--
	if !array {
		s.to.leave(s.path[:s.length])
	}
	s.done()
}

// done is called behind a whole value.
func (s *scanner) done() {
	s.first = false
	if s.depth == 0 {
		s.step = ended
		return
	}
	if !s.top().array {
		s.length = s.top().length
	}
	s.step = wantMore
}

func (s *scanner) next() {
	if s.step = wantName; s.top().array {
		s.step = wantValue
	}
}

// enterName adds a name to the path. A dot in it becomes a question mark, and what is cut
// off at maxName or maxPath is longer than any path that matters.
func (s *scanner) enterName(name []byte) {
	if s.length > 0 && s.length < maxPath {
		s.path[s.length] = '.'
		s.length++
	}
	for _, b := range name {
		if b == '.' {
			b = '?'
		}
		if s.length < maxPath {
			s.path[s.length] = b
			s.length++
		}
	}
}

func (s *scanner) keep(b byte) {
	if s.size < maxLiteral {
		s.literal[s.size] = b
		s.size++
	}
}

// plain counts the bytes up to the end of a string, an escape, or what is none of it.
func plain(p []byte) int {
	for i, b := range p {
		if b == '"' || b == '\\' || b < 0x20 {
			return i
		}
	}
	return len(p)
}

// run takes bytes that plain has counted.
func (s *scanner) run(p []byte) {
	s.size += copy(s.literal[s.size:], p)
	s.add(int64(len(p)))
}

// inText takes a byte of an escape, or of a string or a name what is not plain. An escape
// counts as one byte, \uXXXX as three, and is kept as a question mark: no name or value that
// matters has one.
func (s *scanner) inText(b byte) {
	switch {
	case s.escape > 1:
		s.escape = (s.escape + 1) % 6
	case s.escape == 1:
		s.escape = 0
		if b == 'u' {
			s.escape = 2
			s.add(2)
		}
	case b == '"':
		s.endText()
	case b < 0x20:
		s.step = broken
	default: // a backslash
		s.escape = 1
		s.keep('?')
		s.add(1)
	}
}

// add counts bytes of the model's text.
func (s *scanner) add(n int64) {
	if s.count && s.step == inString {
		s.text += n
	}
}

func (s *scanner) endText() {
	if s.step == inName {
		s.enterName(s.literal[:min(s.size, maxName)])
		s.step = wantColon
		return
	}
	s.to.value(s.path[:s.length], s.literal[:s.size], true)
	s.done()
}

func (s *scanner) word() {
	switch b := s.literal[0]; {
	case b == '-' || b >= '0' && b <= '9':
	case string(s.literal[:s.size]) == "true", string(s.literal[:s.size]) == "false", string(s.literal[:s.size]) == "null":
	default:
		s.step = broken
		return
	}
	s.to.value(s.path[:s.length], s.literal[:s.size], false)
	s.done()
}
