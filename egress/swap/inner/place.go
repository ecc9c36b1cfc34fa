package inner

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
)

// refusal is why a request is not made.
type refusal struct {
	status  int
	reason  link.Reason
	message string
}

func (r *refusal) Error() string { return r.message }

// overrides are headers with which servers take another method or path than the request's.
var overrides = []string{"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url", "X-Original-Method"}

// admit refuses a request that the terms of the host's secrets do not let pass, and returns those secrets whose terms let it carry
// them.
func (s *Server) admit(host string, h *link.Head) ([]*secret, *refusal) {
	if !sameHost(h.Host, host) {
		return nil, &refusal{http.StatusMisdirectedRequest, link.ReasonName, "the connection is for " + host + ", the request for another host"}
	}
	for _, name := range overrides {
		if h.Header.Get(name) != "" {
			return nil, &refusal{http.StatusBadRequest, link.ReasonForm, "the header " + name + " changes the request that the rules see"}
		}
	}
	path, err := secrets.Path(h.Path)
	if err == nil && h.Method == http.MethodConnect {
		err = errors.New("a request to connect has no path, which rules are matched with")
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, link.ReasonForm, err.Error()}
	}
	var may []*secret
	for _, one := range s.secrets {
		if slices.Contains(one.Terms.Hosts, host) && (len(one.rules) == 0 || slices.ContainsFunc(one.rules, func(r secrets.Rule) bool { return r.Allows(h.Method, path) })) {
			may = append(may, one)
		}
	}
	if len(may) == 0 {
		return nil, &refusal{http.StatusForbidden, link.ReasonRule, "no rule of a secret for " + host + " allows " + h.Method + " " + path}
	}
	return may, nil
}

// sameHost reports whether a request names the host, with or without the port of HTTPS.
func sameHost(named, host string) bool {
	named = strings.ToLower(named)
	if named == host {
		return true
	}
	return named == secrets.ShortHost(host)
}

// finder looks for placeholders in one request.
type finder struct {
	all  []*secret // of the run
	may  []*secret // that the request may carry
	used []*secret // that it carries
	// denied are placeholders that leave as they are.
	denied []link.Denied
}

// find returns the secret whose placeholder is the whole text, where the request may carry it. Any other placeholder
// in the text is noted.
func (f *finder) find(text, place string) *secret {
	for _, one := range f.may {
		if text == one.Placeholder {
			return one
		}
	}
	f.stray([]byte(text), place)
	return nil
}

// stray notes placeholders in a text that does not carry one.
func (f *finder) stray(text []byte, place string) {
	for len(f.denied) < strayMost {
		from, to := secrets.FindPlaceholder(text)
		if from < 0 {
			return
		}
		d := link.Denied{Reason: link.ReasonForeign, Detail: place}
		for _, one := range f.all {
			if one.core == string(text[from:to]) {
				d.Secret = one.Name
				if slices.Contains(f.may, one) {
					d.Reason = link.ReasonPlace
				}
			}
		}
		if !slices.Contains(f.denied, d) {
			f.denied = append(f.denied, d)
		}
		text = text[to:]
	}
}

// strayMost bounds what is noted of one request.
const strayMost = 8

func (f *finder) use(one *secret) {
	if !slices.Contains(f.used, one) {
		f.used = append(f.used, one)
	}
}

// change is a place of a request where a placeholder is, and how a value is put there.
type change func(value func(*secret) string)

// header finds placeholders in the head, and returns what puts values into it.
func (f *finder) header(h http.Header) (changes []change) {
	for name, values := range h {
		for i, text := range values {
			one, put := f.carried(name, text)
			if one == nil {
				continue
			}
			f.use(one)
			changes = append(changes, func(value func(*secret) string) { h[name][i] = put(value(one)) })
		}
	}
	return changes
}

// carried is the secret that the value of a header carries, and how it is written there: alone, behind the name of a scheme, or as
// the name or the password of the scheme Basic.
func (f *finder) carried(name, text string) (*secret, func(value string) string) {
	place := "header " + name
	scheme, credentials, two := strings.Cut(text, " ")
	if !two {
		scheme, credentials = "", text
	}
	alone := func(value string) string {
		if two {
			return scheme + " " + value
		}
		return value
	}
	if !strings.EqualFold(scheme, "Basic") {
		one := f.find(credentials, place)
		if one != nil && one.Terms.Header == name && isScheme(scheme) {
			return one, alone
		}
		if one != nil {
			f.stray([]byte(text), place)
		}
		return nil, nil
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimRight(credentials, " "))
	if err != nil {
		f.stray([]byte(text), place)
		return nil, nil
	}
	user, password, _ := strings.Cut(string(plain), ":")
	basic := func(user, password string) string {
		return scheme + " " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	if one := f.find(password, place); one != nil && one.Terms.Header == name {
		f.stray([]byte(user), place)
		return one, func(value string) string { return basic(user, value) }
	}
	if one := f.find(user, place); one != nil && one.Terms.Header == name {
		return one, func(value string) string { return basic(value, password) }
	}
	return nil, nil
}

// isScheme reports whether text is the name of a scheme, or nothing.
func isScheme(text string) bool {
	return len(text) <= 32 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") == ""
}

// query finds placeholders in the query. In it a value is escaped.
func (f *finder) query(h *link.Head) (changes []change) {
	text := h.Query
	for _, one := range f.may {
		if slices.Contains(one.Terms.In, secrets.InURL) && strings.Contains(text, one.Placeholder) {
			f.use(one)
			changes = append(changes, func(value func(*secret) string) {
				h.Query = strings.ReplaceAll(h.Query, one.Placeholder, url.QueryEscape(value(one)))
			})
			text = strings.ReplaceAll(text, one.Placeholder, "")
		}
	}
	f.stray([]byte(text), "query")
	f.stray([]byte(h.Path), "path")
	return changes
}

// inBody are the secrets that the request may carry in its body.
func (f *finder) inBody() (all []*secret) {
	for _, one := range f.may {
		if slices.Contains(one.Terms.In, secrets.InBody) {
			all = append(all, one)
		}
	}
	return all
}

// body finds placeholders in a whole body.
func (f *finder) body(text []byte) (changes []func(text []byte, value func(*secret) string) []byte) {
	rest := text
	for _, one := range f.inBody() {
		mark := []byte(one.Placeholder)
		if !bytes.Contains(rest, mark) {
			continue
		}
		f.use(one)
		rest = bytes.ReplaceAll(rest, mark, nil)
		changes = append(changes, func(text []byte, value func(*secret) string) []byte {
			return bytes.ReplaceAll(text, mark, []byte(value(one)))
		})
	}
	f.stray(rest, "body")
	return changes
}
