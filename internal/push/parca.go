package push

import (
	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
)

// Field numbers of parca/profilestore/v1alpha1/profilestore.proto,
// https://github.com/parca-dev/parca/tree/main/proto
const (
	writeRawSeries = 2
	writeRawNormal = 3
	parcaLabels    = 1 // LabelSet
	parcaSamples   = 2
	labelSetLabels = 1
)

// encodeParca returns a WriteRawRequest of one series with one profile. Parca's labels and samples have
// the same fields as Pyroscope's.
func encodeParca(s *series, p *profile.Profile, sums []pprof.Sum) ([]byte, error) {
	raw, err := pprofOf(p, sums)
	if err != nil {
		return nil, err
	}
	if len(raw) > maxMessage {
		return raw, nil // too large: it is divided
	}
	if raw, err = compress(raw); err != nil {
		return nil, err
	}
	var set, one, sample, request protobuf.Message
	for _, l := range s.promLabels() {
		var m protobuf.Message
		m.Text(labelName, l.name)
		m.Text(labelValue, l.value)
		set.Bytes(labelSetLabels, m)
	}
	sample.Bytes(rawProfile, raw)
	one.Bytes(parcaLabels, set)
	one.Bytes(parcaSamples, sample)
	request.Bytes(writeRawSeries, one)
	request.Flag(writeRawNormal, true) // everything is named: addresses mean nothing
	return request, nil
}
