package upstream

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// A provider is asked for an answer that is not encoded. One that is encoded is refused: a key
// in it would not be found.
func TestEncodedAnswersAreRefused(t *testing.T) {
	t.Parallel()
	for encoding, refused := range map[string]bool{"": false, "identity": false, "gzip": true, "br": true, "deflate, gzip": true, "x": true} {
		for status, used := range map[int]int64{200: 9, 400: 0} {
			asked := make(chan []string, 1)
			r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
				asked <- q.Header.Values("Accept-Encoding")
				if encoding != "" {
					w.Header().Set("Content-Encoding", encoding)
				}
				w.WriteHeader(status)
				fmt.Fprint(w, "an answer")
			}, nil)
			a, d := r.call(link.Call{Format: models.OpenAIChat, In: 9}, "{}")
			if got := <-asked; !slices.Equal(got, []string{"identity"}) {
				t.Errorf("asked for %q", got)
			}
			if (a.err != nil) != refused || (d.First == 0) != refused || d.Status != status || d.Usage.In != used || strings.Contains(a.text, "answer") == refused {
				t.Errorf("%s, %d: %+v, %+v", cmp.Or(encoding, "control"), status, a, d)
			}
		}
	}
}
