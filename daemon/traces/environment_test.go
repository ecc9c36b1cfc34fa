package traces

import (
	"testing"

	"clove.run/clove/agent"
)

func TestTracesAreOffUnlessAsked(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for what, row := range map[string]struct {
		env map[string]string
		on  bool
		bad bool
	}{
		"nothing":            {nil, false, false},
		"an endpoint":        {map[string]string{endpoint: "http://127.0.0.1:1"}, true, false},
		"one for traces":     {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, true, false},
		"an exporter":        {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, false},
		"none":               {map[string]string{"OTEL_TRACES_EXPORTER": "none", endpoint: "http://127.0.0.1:1"}, false, false},
		"disabled":           {map[string]string{"OTEL_SDK_DISABLED": "true", endpoint: "http://127.0.0.1:1"}, false, false},
		"not disabled":       {map[string]string{"OTEL_SDK_DISABLED": "false", endpoint: "http://127.0.0.1:1"}, true, false},
		"a name alone":       {map[string]string{"OTEL_SERVICE_NAME": "x"}, false, false},
		"another exporter":   {map[string]string{"OTEL_TRACES_EXPORTER": "jaeger"}, false, true},
		"another protocol":   {map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, true},
		"its own protocol":   {map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, true, false},
		"disabled, and both": {map[string]string{"OTEL_SDK_DISABLED": "TRUE", "OTEL_TRACES_EXPORTER": "jaeger"}, false, false},
	} {
		on, err := wanted(func(name string) string { return row.env[name] })
		if on != row.on || (err != nil) != row.bad || row.bad && agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s: %t, %v", what, on, err)
		}
	}
}
