package config

import (
	"testing"

	"clove.run/clove/models"
)

const subscribed = `
providers:
  plan: {family: anthropic, url: "https://api.anthropic.com", key: plan, subscription: claude-code}
  key: {family: anthropic, url: "https://api.anthropic.com", key: key}
  chatgpt: {family: openai, url: "https://chatgpt.com/backend-api/codex/", key: codex, subscription: codex, account: acc-1}
models:
  plan: {targets: [{provider: plan, model: claude-opus-5-5}]}
  key: {targets: [{provider: key, model: claude-opus-5-5}]}
`

// A subscription's provider serves the formats of its client's service, below the base URL.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	c := parsed(t, subscribed)
	plan, chatgpt := c.Providers["plan"], c.Providers["chatgpt"]
	if plan.Subscription.Client != "claude-code" || plan.Account != "" || chatgpt.Subscription.Client != "codex" || chatgpt.Account != "acc-1" || c.Providers["key"].Subscription != nil {
		t.Errorf("%+v, %+v", plan, chatgpt)
	}
	if got := chatgpt.Endpoint(models.OpenAIResponses); got != "https://chatgpt.com/backend-api/codex/responses" {
		t.Error(got)
	}
	if chatgpt.Speaks(models.OpenAIChat) || chatgpt.Endpoint(models.OpenAIChat) != "" || !plan.Speaks(models.AnthropicCount) || plan.Speaks(models.OpenAIResponses) {
		t.Error("a subscription serves another format")
	}
}

// The built-in prices are not a subscription's, though the sizes of models are. The file's are.
// The control is a key of the same service.
func TestPriceOfASubscription(t *testing.T) {
	t.Parallel()
	target := func(text, model string) Target {
		t.Helper()
		targets, err := parsed(t, text).Resolve(model, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return targets[0]
	}
	if plan := target(subscribed, "plan"); plan.Price != nil || plan.Context == 0 || plan.MaxOutput == 0 {
		t.Errorf("%+v", plan)
	}
	if key := target(subscribed, "key"); key.Price == nil {
		t.Error("control: a key has no price")
	}
	const price = "prices: [{provider: plan, model: '*', in: 3, out: 4, date: 2026-11-27, source: x}]\n"
	if plan := target(subscribed+price, "plan"); plan.Price == nil || plan.Price.Out != 4 {
		t.Errorf("%+v", plan.Price)
	}
}
