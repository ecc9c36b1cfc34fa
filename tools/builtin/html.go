package builtin

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxToken bounds one token of HTML in bytes.
const maxToken = 1 << 20

// hidden are elements whose text nobody reads; paragraphs those that begin a line.
func hidden(a atom.Atom) bool {
	switch a {
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Iframe, atom.Svg:
		return true
	}
	return false
}

func paragraph(a atom.Atom) bool {
	switch a {
	case atom.P, atom.Div, atom.Br, atom.Li, atom.Ul, atom.Ol, atom.Tr, atom.Table, atom.Pre, atom.Blockquote, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Main, atom.Nav, atom.Hr,
		atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Dl, atom.Dt, atom.Dd, atom.Figure, atom.Form, atom.Title:
		return true
	}
	return false
}

// page collects the text of a page.
type page struct {
	text  strings.Builder
	space bool // is due before the next word
	line  bool // so is a new line
}

func (p *page) write(text string) {
	blank := func(c byte) bool { return strings.IndexByte(" \t\r\n\f", c) >= 0 }
	p.space = p.space || text != "" && blank(text[0])
	for i, word := range strings.Fields(text) {
		switch {
		case p.text.Len() == 0:
		case p.line:
			p.text.WriteByte('\n')
		case i > 0 || p.space:
			p.text.WriteByte(' ')
		}
		p.text.WriteString(word)
		p.space, p.line = false, false
	}
	p.space = p.space || text != "" && blank(text[len(text)-1])
}

// readable is the text of a page, with the addresses of its links in brackets. It goes through
// the tokens, so its time and memory are linear.
func readable(content []byte) string {
	tokens := html.NewTokenizer(bytes.NewReader(content))
	tokens.SetMaxBuf(maxToken)
	var p page
	var inside atom.Atom // a hidden element
	link := ""
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken { // the end, or a token that is too long
			return strings.ToValidUTF8(p.text.String(), "\uFFFD")
		}
		token := tokens.Token()
		switch {
		case inside != 0:
			if kind == html.EndTagToken && token.DataAtom == inside {
				inside = 0
			}
		case kind == html.TextToken:
			p.write(token.Data)
		case kind == html.StartTagToken && hidden(token.DataAtom):
			inside = token.DataAtom
		case paragraph(token.DataAtom):
			p.line = true
		case token.DataAtom == atom.Td || token.DataAtom == atom.Th:
			p.space = true
		case token.DataAtom == atom.A && kind == html.StartTagToken:
			link = href(token)
		case token.DataAtom == atom.A && kind == html.EndTagToken && link != "":
			p.write(" [" + link + "] ")
			link = ""
		}
	}
}

// href is where a link leads; empty: within the page.
func href(token html.Token) string {
	for _, a := range token.Attr {
		if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "javascript:") && len(a.Val) < 2048 {
			return a.Val
		}
	}
	return ""
}
