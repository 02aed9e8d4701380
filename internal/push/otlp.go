package push

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/candid-profiler/candid/internal/format/otlp"
	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/profile"
)

// encodeOTLP returns an ExportProfilesServiceRequest of one resource, the service, with one profile.
func encodeOTLP(s *series, p *profile.Profile, list []pprof.Sum) ([]byte, error) {
	attributes := []otlp.Attribute{{Key: attrService, Value: cut(s.service, maxLabelValue)}}
	for _, l := range s.labels() {
		attributes = append(attributes, otlp.Attribute{Key: l.name, Value: l.value})
	}
	sums := make([]otlp.Sum, len(list))
	for i, c := range list {
		sums[i] = otlp.Sum{Node: c.Node, Weight: c.Weight}
	}
	// The names of the event's type are made from its own name.
	one := *p
	one.Events = []profile.Event{s.event}
	return otlp.Sums(&one, attributes, sums), nil
}

// Field numbers of ExportProfilesServiceResponse and ExportProfilesPartialSuccess,
// https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/collector/profiles/v1development/profiles_service.proto
const (
	exportPartialSuccess = 1
	partialRejected      = 1
	partialMessage       = 2
)

// acceptedOTLP returns how many profiles a server rejected although it accepted the message.
func acceptedOTLP(message []byte) (rejected uint64, why string) {
	eachField(message, func(field protowire.Number, _ uint64, partial []byte) {
		if field == exportPartialSuccess {
			eachField(partial, func(field protowire.Number, number uint64, text []byte) {
				switch {
				case field == partialRejected && int64(number) > 0:
					rejected = number
				case field == partialMessage && text != nil:
					why = string(text)
				}
			})
		}
	})
	return min(rejected, 1), why // there was one
}

// eachField calls f for each field of a message, up to the first thing that is none.
func eachField(b []byte, f func(field protowire.Number, number uint64, data []byte)) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if size < 0 {
			return
		}
		switch typ {
		case protowire.VarintType:
			v, _ := protowire.ConsumeVarint(b)
			f(num, v, nil)
		case protowire.BytesType:
			data, _ := protowire.ConsumeBytes(b)
			f(num, 0, data)
		}
		b = b[size:]
	}
}
