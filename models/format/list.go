package format

import (
	"time"

	"clove.run/clove/models"
)

// Models returns the answer to GET /v1/models: the names, with one time of creation. formats, a
// field of clove's own, are those that each can be called in; nil: they are left out.
func Models(family models.Family, names []string, formats []string, at time.Time) []byte {
	if family == models.Anthropic {
		return anthropicModels(names, formats, at)
	}
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`

		Formats []string `json:"formats,omitempty"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{}}
	for _, name := range names {
		list.Data = append(list.Data, model{name, "model", at.Unix(), "clove", formats})
	}
	return marshal(list)
}

func anthropicModels(names []string, formats []string, at time.Time) []byte {
	type model struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		CreatedAt   string `json:"created_at"`

		Formats []string `json:"formats,omitempty"`
	}
	list := struct {
		Data    []model `json:"data"`
		HasMore bool    `json:"has_more"`
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
	}{Data: []model{}}
	for _, name := range names {
		list.Data = append(list.Data, model{"model", name, name, at.UTC().Format(time.RFC3339), formats})
	}
	if len(names) > 0 {
		list.FirstID, list.LastID = &names[0], &names[len(names)-1]
	}
	return marshal(list)
}
