package push

import (
	"bytes"
	"crypto/rand"
	"fmt"

	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/format/protobuf"
	"github.com/candid-profiler/candid/internal/profile"
)

// Field numbers of push/v1/push.proto and types/v1/types.proto,
// https://github.com/grafana/pyroscope/tree/main/api
const (
	pushSeries    = 1
	seriesLabels  = 1
	seriesSamples = 2
	rawProfile    = 1
	rawID         = 2
	labelName     = 1
	labelValue    = 2
)

// encodePyroscope returns a PushRequest of one series with one profile: Pyroscope tries a request
// series by series, so that the failure of one would leave open which of the others it has.
func encodePyroscope(s *series, p *profile.Profile, sums []pprof.Sum) ([]byte, error) {
	raw, err := pprofOf(p, sums)
	if err != nil {
		return nil, err
	}
	var one, sample, request protobuf.Message
	for _, l := range s.promLabels() {
		var m protobuf.Message
		m.Text(labelName, l.name)
		m.Text(labelValue, l.value)
		one.Bytes(seriesLabels, m)
	}
	sample.Bytes(rawProfile, raw)
	sample.Text(rawID, newID())
	one.Bytes(seriesSamples, sample)
	request.Bytes(pushSeries, one)
	return request, nil
}

func pprofOf(p *profile.Profile, sums []pprof.Sum) ([]byte, error) {
	var b bytes.Buffer
	err := pprof.WriteSums(&b, p, sums)
	return b.Bytes(), err
}

// newID returns a random UUID, version 4 of RFC 9562.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
