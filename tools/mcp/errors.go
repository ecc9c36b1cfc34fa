package mcp

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
)

// codeBusy says that a repetition may succeed.
const codeBusy = int64(api.CodeBusy)

// failed is the result of a call that failed.
func failed(why string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: why}}}
}

// explained is an error for a model: which it is, what happened, and what to do.
func explained(e *api.Error) string {
	text := e.Message
	if e.Data.Word != "" {
		text = e.Data.Word + ": " + text
	}
	if e.Data.Hint != "" {
		text += "\nhint: " + e.Data.Hint
	}
	return text
}

// refused is an error of a request that is no call of a tool.
func refused(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	e := api.ErrorOf(err)
	return &jsonrpc.Error{Code: int64(e.Code), Message: explained(e)}
}
