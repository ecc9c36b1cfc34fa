package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"clove.run/clove/agent"
)

// Every kind of clove's own errors has a code of the set, and is the same error after a round
// trip.
func TestErrorsKeepTheirKind(t *testing.T) {
	t.Parallel()
	for _, kind := range []agent.Kind{agent.KindInvalid, agent.KindNotFound, agent.KindConflict, agent.KindUnenforceable,
		agent.KindPrivilege, agent.KindBusy, agent.KindInternal} {
		sent := ErrorOf(fmt.Errorf("outer: %w", &agent.Error{Kind: kind, Step: "a step", Message: "it failed", Hint: "do this"}))
		text, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		var known *agent.Error
		if got := ParseError(text); !errors.As(error(got), &known) || known.Kind != kind || known.Hint != "do this" || known.Step != "a step" ||
			known.Message != "it failed" || got.Data.Word == "" {
			t.Errorf("%s came back as %+v", kind, got)
		}
	}
}

func TestStorageHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EDQUOT} {
		if e := ErrorOf(&agent.Error{Kind: agent.KindInternal, Message: "store", Err: number}); e.Code != CodeStorage {
			t.Errorf("%v is %d", number, e.Code)
		}
	}
	if e := ErrorOf(syscall.EPERM); e.Code != CodeInternal {
		t.Errorf("EPERM is %d", e.Code)
	}
}

func TestCodesAreDistinct(t *testing.T) {
	t.Parallel()
	codes, names := map[Code]bool{}, map[string]bool{}
	for _, row := range Codes {
		if codes[row.Code] || names[row.Word] || row.Meaning == "" || row.Kind == "" {
			t.Errorf("%+v", row)
		}
		codes[row.Code], names[row.Word] = true, true
	}
}

// Another server's error may have no data, or data in another format.
func TestParseErrorTakesAnything(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"code":-32600,"message":"m"}`, `{"code":-32600,"message":"m","data":"x"}`, `{"code":-32600,"message":"m","data":[1]}`} {
		if e := ParseError(json.RawMessage(text)); e.Code != CodeRequest || e.Message != "m" {
			t.Errorf("%s: %+v", text, e)
		}
	}
}
