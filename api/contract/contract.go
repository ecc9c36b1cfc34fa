package contract

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Contract is what callers may rely on.
type Contract struct {
	Version       int                 `json:"version"`
	Errors        map[string]api.Code `json:"errors"` // by word
	ErrorData     Fields              `json:"error_data"`
	Methods       []Method            `json:"methods"`
	Notifications []Notification      `json:"notifications"`
}

// Method is one method.
type Method struct {
	Name     string    `json:"method"`
	Tier     api.Tier  `json:"tier"`
	Callers  []string  `json:"callers"` // root, member, owner, agent
	Doc      string    `json:"doc,omitempty"`
	Shape    api.Shape `json:"shape"`
	Notifies string    `json:"notifies,omitempty"` // the notification of a stream
	Errors   []string  `json:"errors,omitempty"`   // words, beside those that every method can give
	Params   Fields    `json:"params"`
	Result   Fields    `json:"result"`
}

// Notification is one notification.
type Notification struct {
	Name     string     `json:"notification"`
	From     api.Sender `json:"from"`
	ForAgent bool       `json:"for_agent,omitempty"`
	Params   Fields     `json:"params"`
}

// Current is the contract of this build.
func Current() Contract {
	c := Contract{Version: api.Version, Errors: map[string]api.Code{}, ErrorData: fieldsOf(reflect.TypeFor[api.ErrorData]())}
	words := map[api.Code]string{}
	for _, row := range api.Codes {
		c.Errors[row.Word], words[row.Code] = row.Code, row.Word
	}
	for _, m := range methods.All() {
		row := Method{Name: m.Name, Tier: m.Tier, Callers: m.Access.Callers(), Doc: m.Doc, Shape: m.Shape, Notifies: m.Notes,
			Params: fieldsOf(reflect.TypeOf(m.Params)), Result: fieldsOf(reflect.TypeOf(m.Result))}
		for _, code := range m.Errors {
			row.Errors = append(row.Errors, words[code])
		}
		c.Methods = append(c.Methods, row)
	}
	for _, n := range api.Notifications {
		c.Notifications = append(c.Notifications, Notification{Name: n.Name, From: n.From, ForAgent: n.ForAgent, Params: fieldsOf(reflect.TypeOf(n.Params))})
	}
	return c
}

//go:embed versions/*.json
var versions embed.FS

// Of returns the contract of a version that this build knows: 1 to api.Version. It has no
// descriptions.
func Of(version int) (Contract, error) {
	text, err := versions.ReadFile(fmt.Sprintf("versions/%d.json", version))
	if err != nil {
		return Contract{}, fmt.Errorf("there is no contract version %d", version)
	}
	return Parse(text)
}

// Parse reads a contract as JSON. Fields of a newer clove are left out.
func Parse(text []byte) (Contract, error) {
	var c Contract
	if err := json.Unmarshal(text, &c); err != nil {
		return Contract{}, err
	}
	if c.Version < 1 || len(c.Methods) == 0 {
		return Contract{}, errors.New("it has no version, or no methods")
	}
	return c, nil
}
