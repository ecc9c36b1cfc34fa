package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// The resources. All but blobs are shown with the services of the kernel only.
const (
	runURI    = "clove://run"
	budgetURI = "clove://budget"
	auditURI  = "clove://audit"
	blobStart = "clove://blob/"
)

const (
	// maxBlobBytes bounds what one read of a blob returns.
	maxBlobBytes = 1 << 20
	// maxAuditParts bounds what of the audit log is gone through for its last records.
	maxAuditParts = 256
)

func blobURI(digest string) string { return blobStart + digest }

func (d *door) listResources(ctx context.Context) (sdk.Result, error) {
	result := &sdk.ListResourcesResult{Cacheable: private, Resources: []*sdk.Resource{}}
	if !d.Kernel {
		return result, nil
	}
	result.Resources = append(result.Resources,
		&sdk.Resource{URI: runURI, Name: "run", MIMEType: "application/json", Description: "What this agent is, may do and may spend."},
		&sdk.Resource{URI: budgetURI, Name: "budget", MIMEType: "application/json", Description: "The budgets that this agent spends from."})
	if kinds := d.held(ctx); kinds == nil || kinds["audit"] {
		result.Resources = append(result.Resources, &sdk.Resource{URI: auditURI, Name: "audit", MIMEType: "application/json",
			Description: "The newest records of the audit log about this agent's namespace."})
	}
	return result, nil
}

func (d *door) listTemplates() (sdk.Result, error) {
	return &sdk.ListResourceTemplatesResult{Cacheable: private, ResourceTemplates: []*sdk.ResourceTemplate{{
		URITemplate: blobStart + "{sha256}{?offset}", Name: "blob",
		Description: "A large result or body, by its SHA-256: at most 1 MiB from the offset on. _meta has next_offset where there is more."}}}, nil
}

func (d *door) readResource(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	var value any
	var err error
	switch uri := r.Params.URI; {
	case strings.HasPrefix(uri, blobStart):
		return d.readBlob(ctx, uri)
	case uri == runURI && d.Kernel:
		value, err = ask(ctx, d, agents.AgentGet, api.RunParams{})
	case uri == budgetURI && d.Kernel:
		value, err = ask(ctx, d, agents.BudgetGet, api.RunParams{})
	case uri == auditURI && d.Kernel:
		value, err = d.newest(ctx)
	default:
		return nil, sdk.ResourceNotFoundError(uri)
	}
	var text []byte
	if err == nil {
		text, err = json.Marshal(value)
	}
	if err != nil {
		return nil, d.unread(r.Params.URI, err)
	}
	return &sdk.ReadResourceResult{Cacheable: private, Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(text)}}}, nil
}

// unread is why a resource cannot be read.
func (d *door) unread(uri string, err error) error {
	if api.ErrorOf(err).Code == api.CodeNotFound {
		return sdk.ResourceNotFoundError(uri)
	}
	return refused(err)
}

// newest reads the last parts of the audit log about the run's namespace.
func (d *door) newest(ctx context.Context) (result api.AuditReadResult, err error) {
	run, err := ask(ctx, d, agents.AgentGet, api.RunParams{})
	if err != nil {
		return result, err
	}
	p := api.AuditReadParams{Namespace: run.Namespace}
	var last []json.RawMessage
	for range maxAuditParts {
		part, err := ask(ctx, d, agents.AuditRead, p)
		if err != nil {
			return result, err
		}
		if len(part.Records) > 0 {
			last, result.Records = result.Records, part.Records
		}
		if p.After, result.Next = part.Next, part.Next; part.Next == 0 {
			break
		}
	}
	result.Records = append(last, result.Records...)
	return result, nil
}

// readBlob reads clove://blob/SHA256 or clove://blob/SHA256?offset=BYTES.
func (d *door) readBlob(ctx context.Context, uri string) (*sdk.ReadResourceResult, error) {
	digest, query, _ := strings.Cut(strings.TrimPrefix(uri, blobStart), "?")
	values, err := url.ParseQuery(query)
	p := api.BlobReadParams{BlobAt: api.BlobAt{Blob: digest}}
	if err == nil && values.Has("offset") {
		p.Offset, err = strconv.ParseInt(values.Get("offset"), 10, 64)
	}
	if err != nil || strings.Trim(digest, "0123456789abcdef") != "" || len(digest) != 64 {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	var data []byte
	for {
		part, err := ask(ctx, d, agents.BlobRead, p)
		if err != nil {
			return nil, d.unread(uri, err)
		}
		data = append(data, part.Data...)
		if p.Offset = part.NextOffset; p.Offset == 0 || len(part.Data) == 0 || len(data)+api.BlobPartMost > maxBlobBytes {
			break
		}
	}
	contents := &sdk.ResourceContents{URI: uri, MIMEType: "text/plain"}
	if p.Offset > 0 {
		contents.Meta = sdk.Meta{"next_offset": p.Offset}
	}
	if utf8.Valid(data) {
		contents.Text = string(data)
	} else {
		contents.MIMEType, contents.Blob = "application/octet-stream", data
	}
	return &sdk.ReadResourceResult{Cacheable: private, Contents: []*sdk.ResourceContents{contents}}, nil
}
