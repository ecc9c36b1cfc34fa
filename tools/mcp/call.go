package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/tools"
)

// callTool makes one call. What a model can do better is a result, as MCP has it, and no error.
func (d *door) callTool(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	arguments := bytes.TrimSpace(r.Params.Arguments)
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = []byte("{}")
	}
	switch {
	case arguments[0] != '{':
		return failed("the arguments are an object"), nil
	case len(arguments) > tools.MaxArguments:
		return failed(fmt.Sprintf("the arguments have more than %d bytes: send less at once", tools.MaxArguments)), nil
	}
	defer d.report(ctx, r)()
	if service, is := findService(r.Params.Name); is && d.Kernel {
		return d.callService(ctx, service, arguments)
	}
	result, err := ask(ctx, d, agents.ToolCall, api.ToolCallParams{Tool: r.Params.Name, Arguments: arguments})
	if err == nil {
		return d.shownResult(ctx, r, result), nil
	}
	e := api.ErrorOf(err)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case e.Code == api.CodeNotFound:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %.128q: %s", r.Params.Name, e.Message)}
	}
	return failed(explained(e)), nil
}

// report sends notifications of progress while a call goes on, if its client has asked for them.
func (d *door) report(ctx context.Context, r *sdk.CallToolRequest) (stop func()) {
	token := r.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		began := time.Now()
		ticker := time.NewTicker(d.times.progress)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				took := time.Since(began).Seconds()
				// A client that has gone has its own end.
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: took, Message: fmt.Sprintf("it goes on, for %.0f s now", took)})
			}
		}
	})
	return func() {
		cancel()
		reporting.Wait() // none may come behind the answer
	}
}

// shownResult is a tool's result as clients get it.
func (d *door) shownResult(ctx context.Context, r *sdk.CallToolRequest, result api.ToolCallResult) *sdk.CallToolResult {
	shown := &sdk.CallToolResult{IsError: result.Failed, Content: []sdk.Content{}}
	if result.Text != "" || !result.Failed {
		shown.Content = append(shown.Content, &sdk.TextContent{Text: result.Text})
	}
	if result.Failed && result.Error != "" {
		shown.Content = append(shown.Content, &sdk.TextContent{Text: result.Error})
	}
	if result.Left > 0 {
		shown.Content = append(shown.Content, &sdk.TextContent{Text: fmt.Sprintf("[%d more bytes of the result were dropped]", result.Left)})
	}
	if result.Failed {
		return shown
	}
	of := d.shape(ctx, r.Params.Name)
	if of == plain || of == value && r.ProtocolVersion() < stateless {
		return shown
	}
	text := []byte(result.Text)
	switch {
	case result.Left > 0:
		return notOf(shown, "the result is too long for one of the tool's schema")
	case !json.Valid(text) || of == object && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		return notOf(shown, "the result is not of the tool's schema")
	}
	shown.StructuredContent = json.RawMessage(text)
	return shown
}

// notOf is a result that has not what its tool promises.
func notOf(shown *sdk.CallToolResult, why string) *sdk.CallToolResult {
	shown.IsError = true
	shown.Content = append(shown.Content, &sdk.TextContent{Text: why})
	return shown
}
