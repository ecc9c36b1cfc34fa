package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/tools"
)

// Each service is a method for agents, and its fields are parameters of it. None names a run.
func TestServicesAreMethods(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range services {
		if seen[s.tool] || !s.method.ForAgents() || s.doc == "" || len(prefix+s.tool) > tools.MaxName {
			t.Errorf("%+v", s)
		}
		seen[s.tool] = true
		for _, f := range s.fields {
			if _, is := fieldOf(reflect.TypeOf(s.method.Params), f.name); !is || f.doc == "" || f.name == "run" || f.name == "owner" {
				t.Errorf("%s: %s", s.tool, f.name)
			}
		}
		var schema struct {
			Type       string                    `json:"type"`
			Properties map[string]map[string]any `json:"properties"`
		}
		must(t, json.Unmarshal(schemaOf(s.method.Params, s.fields), &schema))
		if schema.Type != "object" || len(schema.Properties) != len(s.fields) {
			t.Errorf("%s: %+v", s.tool, schema)
		}
	}
	var schema map[string]any
	s, _ := findService("clove_agent_spawn")
	must(t, json.Unmarshal(schemaOf(s.method.Params, s.fields), &schema))
	properties := schema["properties"].(map[string]any)
	if got := fmt.Sprint(schema["required"], properties["args"].(map[string]any)["items"], properties["manifest"].(map[string]any)["type"]); got != "[manifest] map[type:string]string" {
		t.Error(got)
	}
}

// kernel is the other side of services for a run with these grants.
func kernel(grants ...string) func(*rig) {
	return func(r *rig) {
		r.serve.Kernel = true
		r.other = func(c called) (any, error) {
			switch c.method {
			case "grant.list":
				var result api.GrantListResult
				for _, g := range grants {
					result.Grants = append(result.Grants, api.Grant{Grant: g})
				}
				return result, nil
			case "mail.send":
				return api.MailSendResult{ID: "m1"}, nil
			case "state.set":
				return nil, api.Failure(api.CodeDenied, "ask for one", "no grant covers it")
			case "mail.receive":
				return nil, api.Failure(api.CodeNotFound, "", "nothing came within 1 s").By("", api.RuleWithin)
			case "agent.wait":
				<-c.ctx.Done()
				return nil, c.ctx.Err()
			case "agent.get":
				return api.AgentResult{ID: "0123", Name: "worker", Namespace: "team"}, nil
			}
			return nil, api.Failure(api.CodeMethod, "", "not in this test")
		}
	}
}

func names(list *sdk.ListToolsResult) string {
	var all []string
	for _, tool := range list.Tools {
		all = append(all, tool.Name)
	}
	return strings.Join(all, " ")
}

// A run sees the services that its grants let it use, and a tool that has the name of one does not hide it.
func TestServicesAreListed(t *testing.T) {
	t.Parallel()
	for grants, want := range map[string]struct{ has, lacks string }{
		"":            {"clove_agent_get clove_mail_receive clove_state_set clove_agent_spawn", "clove_mail_send clove_job_add clove_job_claim clove_job_get"},
		"send:*":      {"clove_mail_send clove_job_add clove_job_get", "clove_job_claim"},
		"name:job/q":  {"clove_job_claim clove_job_complete clove_job_get", "clove_mail_send"},
		"tool:echo:x": {"echo", "clove_mail_send"},
	} {
		r := newRig(t, func(r *rig) {
			kernel(grants)(r)
			r.tools = append(r.tools, tools.Tool{Name: "clove_agent_get", Description: "forged"})
		})
		session := r.connect(revisionNew, nil)
		list, err := session.ListTools(t.Context(), nil)
		must(t, err)
		has := strings.Fields(names(list))
		for _, name := range strings.Fields(want.has) {
			if !slices.Contains(has, name) {
				t.Errorf("%q: %s is missing", grants, name)
			}
		}
		for _, name := range strings.Fields(want.lacks) {
			if slices.Contains(has, name) {
				t.Errorf("%q: %s is there", grants, name)
			}
		}
		for _, tool := range list.Tools {
			if tool.Description == "forged" {
				t.Error("a tool hides a service")
			}
		}
		if result := call(t, session, "clove_agent_get", "{}"); !strings.Contains(texts(result), `"worker"`) {
			t.Errorf("%+v", texts(result))
		}
	}
	r := newRig(t, nil) // control: no services
	list, err := r.connect(revisionNew, nil).ListTools(t.Context(), nil)
	must(t, err)
	if names(list) != "echo" {
		t.Error(names(list))
	}
}

func TestServicesAreCalled(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		kernel("send:*")(r)
		r.server.times.wait = 100 * time.Millisecond
	})
	session := r.connect(revisionNew, nil)
	for name, row := range map[string]struct {
		tool, arguments string
		failed          bool
		has             string
		sent            string // parameters over the channel
	}{
		"a message":         {"mail_send", `{"to":"other","body":{"a":[1]}}`, false, `"id":"m1"`, `{"to":"other","body":{"a":[1]}}`},
		"no receiver":       {"mail_send", `{"body":1}`, true, "the argument to is missing", ""},
		"an unknown field":  {"mail_send", `{"to":"x","body":1,"trace":"x"}`, true, `there is no argument "trace"`, ""},
		"a run":             {"agent_get", `{"run":"other"}`, true, `there is no argument "run"`, ""},
		"another type":      {"mail_send", `{"to":5,"body":1}`, true, "invalid: ", ""},
		"a refusal":         {"state_set", `{"path":"a","value":1}`, true, "denied: no grant covers it\nhint: ask for one", `{"path":"a","value":1}`},
		"nothing came":      {"mail_receive", `{"most":2}`, false, "nothing yet", `{"most":2,"within_ms":100}`},
		"another wait":      {"mail_receive", `{"within_ms":5}`, false, "nothing yet", `{"within_ms":5}`},
		"it goes on":        {"agent_wait", `{"child":"a"}`, false, "nothing yet", `{"child":"a"}`},
		"an unknown method": {"budget_get", `{}`, true, "method: ", `{"run":""}`},
	} {
		before := len(r.calls)
		result := call(t, session, prefix+row.tool, row.arguments)
		if got := texts(result); result.IsError != row.failed || !strings.Contains(got, row.has) {
			t.Errorf("%s: %q", name, got)
		}
		if row.sent == "" {
			if len(r.calls) != before {
				t.Errorf("%s: it was sent", name)
			}
			continue
		}
		if c := await(t, r.calls); c.params != row.sent {
			t.Errorf("%s: %s", name, c.params)
		}
	}
	other := newRig(t, nil) // control: without Kernel they are no tools
	_, err := other.connect(revisionNew, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "clove_mail_send"})
	if e := new(jsonrpc.Error); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
		t.Error(err)
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	digests := map[string]string{"text": strings.Repeat("a", 64), "bytes": strings.Repeat("b", 64), "large": strings.Repeat("c", 64)}
	blobs := map[string][]byte{
		digests["text"]:  []byte("a text"),
		digests["bytes"]: {0xff, 0},
		digests["large"]: []byte(strings.Repeat("x", maxBlobBytes+5)),
	}
	r := newRig(t, func(r *rig) {
		kernel("audit:team")(r)
		services := r.other
		r.other = func(c called) (any, error) {
			switch c.method {
			case "budget.get":
				return api.BudgetResult{Budgets: []api.Budget{{Dimension: "tokens"}}}, nil
			case "audit.read":
				var p api.AuditReadParams
				must(t, json.Unmarshal([]byte(c.params), &p))
				if p.Namespace != "team" {
					return nil, api.Failure(api.CodeDenied, "", "no")
				}
				result := api.AuditReadResult{Records: []json.RawMessage{json.RawMessage(fmt.Sprint(p.After))}}
				if result.Next = p.After + 1; result.Next == 5 {
					result.Next = 0
				}
				return result, nil
			case "blob.read":
				var p api.BlobReadParams
				must(t, json.Unmarshal([]byte(c.params), &p))
				blob, is := blobs[p.Blob]
				if !is || p.Offset > int64(len(blob)) {
					return nil, api.Failure(api.CodeNotFound, "", "no blob")
				}
				end := min(len(blob), int(p.Offset)+api.BlobPartMost)
				part := api.BlobReadResult{Data: blob[p.Offset:end], Bytes: int64(len(blob))}
				if end < len(blob) {
					part.NextOffset = int64(end)
				}
				return part, nil
			}
			return services(c)
		}
	})
	for _, revision := range revisions {
		session := r.connect(revision, nil)
		list, err := session.ListResources(t.Context(), nil)
		must(t, err)
		templates, err := session.ListResourceTemplates(t.Context(), nil)
		must(t, err)
		if len(list.Resources) != 3 || len(templates.ResourceTemplates) != 1 {
			t.Errorf("%s: %d, %d", revision, len(list.Resources), len(templates.ResourceTemplates))
		}
		for uri, want := range map[string]string{runURI: `"name":"worker"`, budgetURI: `"tokens"`, auditURI: `"records":[3,4]`, blobURI(digests["text"]): "a text"} {
			read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			must(t, err)
			if c := read.Contents[0]; c.URI != uri || !strings.Contains(c.Text, want) || len(read.Contents) != 1 {
				t.Errorf("%s, %s: %+v", revision, uri, c)
			}
		}
		read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: blobURI(digests["bytes"])})
		must(t, err)
		if c := read.Contents[0]; string(c.Blob) != "\xff\x00" || c.MIMEType != "application/octet-stream" {
			t.Errorf("%+v", c)
		}
		uri, whole := blobURI(digests["large"]), ""
		for next := uri; next != ""; {
			read, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: next})
			must(t, err)
			whole += read.Contents[0].Text
			if len(read.Contents[0].Text) > maxBlobBytes {
				t.Errorf("%d bytes", len(read.Contents[0].Text))
			}
			next = ""
			if offset, more := read.Contents[0].Meta["next_offset"]; more {
				next = fmt.Sprintf("%s?offset=%.0f", uri, offset)
			}
		}
		if whole != string(blobs[digests["large"]]) {
			t.Errorf("%d bytes", len(whole))
		}
		for _, uri := range []string{"clove://other", "file:///etc/passwd", blobStart, blobURI("../run"), blobURI(strings.Repeat("A", 64)), blobURI(strings.Repeat("d", 64)), blobURI(digests["text"]) + "?offset=x", anything} {
			_, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if e := new(jsonrpc.Error); !errors.As(err, &e) || e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: %v", uri, err)
			}
		}
	}
	without := newRig(t, func(r *rig) { kernel()(r) })
	list, err := without.connect(revisionNew, nil).ListResources(t.Context(), nil)
	must(t, err)
	if len(list.Resources) != 2 {
		t.Error("the audit log is shown without a grant")
	}
	_, err = r.connect(revisionNew, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: anything})
	if e := new(jsonrpc.Error); !errors.As(err, &e) {
		t.Error(err)
	}
}
