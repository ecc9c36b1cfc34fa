package model

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// format is a published form of calls.
type format interface {
	path() string // behind the base URL
	authorize(h http.Header, key string)
	body(c *Client, messages []Message, choice string) ([]byte, error)
	// event adds what the data of an event says to the answer.
	event(s *stream, data []byte) error
}

// formats are by the name that the server gives them; the first that it has is used.
var formats = []struct {
	name string
	format
}{{"openai-chat", chat{}}, {"anthropic-messages", messages{}}}

// learn asks in which format the model is served, unless that is known.
func (c *Client) learn(ctx context.Context) error {
	if c.format != nil {
		return nil
	}
	response, err := c.send(ctx, http.MethodGet, "/models/"+url.PathEscape(c.Model), nil, formats[0])
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var model struct{ Formats []string }
	if response.StatusCode != http.StatusOK {
		if f := refusal(response); f.again {
			return f
		}
	} else if err := json.NewDecoder(io.LimitReader(response.Body, maxError)).Decode(&model); err != nil {
		model.Formats = nil // another server's form
	}
	for _, f := range formats {
		if len(model.Formats) == 0 || slices.Contains(model.Formats, f.name) {
			c.format = f
			return nil
		}
	}
	return &Failure{Message: fmt.Sprintf("the model is served as %.200q, and called as openai-chat or anthropic-messages", strings.Join(model.Formats, ", "))}
}
