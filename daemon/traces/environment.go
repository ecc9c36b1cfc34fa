package traces

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"clove.run/clove/agent"
)

// FromEnvironment reads the OTEL_ variables. It returns nil, which traces
// nothing, where none asks for traces. The exporter itself reads what is not
// decided here: endpoint, headers, certificates, compression, timeout, sampler
// and the size of batches.
func FromEnvironment(ctx context.Context, version string, log *slog.Logger) (*Tracer, error) {
	on, err := wanted(os.Getenv)
	if err != nil || !on {
		return nil, err
	}
	// It connects with the first batch, so a collector that is away does not keep cloved
	// from starting.
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, refused(err.Error())
	}
	// Attributes of the service in the environment take precedence over those here.
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "cloved"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, refused(err.Error())
	}
	// A collector that is away is worth a line, and nothing more.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("cannot export traces", "error", err) }))
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	return &Tracer{provider: provider, tracer: provider.Tracer("clove.run/clove")}, nil
}

// wanted reports whether the environment asks for traces. By the standard they would
// always be on; here an exporter or an endpoint must be named.
func wanted(env func(string) string) (bool, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	to := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	switch exporter := env("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "":
		if to == "" {
			return false, nil
		}
	case "otlp":
	default:
		return false, refused(fmt.Sprintf("OTEL_TRACES_EXPORTER: %q is not otlp or none", exporter))
	}
	protocol := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), httpProtobuf)
	if protocol != httpProtobuf {
		return false, refused(fmt.Sprintf("OTEL_EXPORTER_OTLP_PROTOCOL: %q is not %s", protocol, httpProtobuf))
	}
	return true, nil
}

// httpProtobuf is the one protocol of the exporter that is built in.
const httpProtobuf = "http/protobuf"

// refused is an error that stops cloved's start.
func refused(message string) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "traces", Message: message, Hint: "docs/metrics.md lists the variables; OTEL_SDK_DISABLED=true turns traces off"}
}
