package main

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
)

// decode prints what the Collector's pdata finds in a file of ProfilesData.
func decode(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: servers decode FILE")
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	data, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(b)
	if err != nil {
		return err
	}
	s := &store{Refused: map[string]int{}}
	s.take(data)
	return json.NewEncoder(os.Stdout).Encode(s)
}

// take keeps everything in some profiles.
func (s *store) take(data pprofile.Profiles) {
	d := data.Dictionary()
	str := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, rp := range data.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				one := series{Labels: map[string]string{"scope": sp.Scope().Name()}, Time: p.Time().AsTime().UnixNano(), Duration: int64(p.DurationNano()), Sums: map[string]map[string]int64{}}
				for k, v := range rp.Resource().Attributes().All() {
					one.Labels[k] = v.AsString()
				}
				typ := str(p.SampleType().TypeStrindex())
				one.Sums[typ] = map[string]int64{}
				for _, sample := range p.Samples().All() {
					if n, times := sample.Values().Len(), sample.TimestampsUnixNano().Len(); n != 1 || times != 0 {
						s.Refused[fmt.Sprintf("%d values with %d times", n, times)]++
						continue
					}
					var names []string
					for _, l := range d.StackTable().At(int(sample.StackIndex())).LocationIndices().All() {
						for _, line := range d.LocationTable().At(int(l)).Lines().All() {
							names = append(names, str(d.FunctionTable().At(int(line.FunctionIndex())).NameStrindex()))
						}
					}
					one.Sums[typ][strings.Join(names, " < ")] += sample.Values().At(0)
				}
				s.Series = append(s.Series, one)
			}
		}
	}
}

// export takes what a Collector exports by OTLP/HTTP.
func (s *store) export(w http.ResponseWriter, body []byte) {
	request := pprofileotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	s.take(request.Profiles())
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// sink serves OTLP/HTTP for a Collector to export to, and /got.
func sink([]string) error {
	s := &store{Refused: map[string]int{}}
	l, err := listen()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/got", s)
	mux.HandleFunc("/v1development/profiles", func(w http.ResponseWriter, r *http.Request) {
		body, err := bodyOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.export(w, body)
	})
	go func() { _ = http.Serve(l, mux) }()
	ended()
	return nil
}

// bodyOf returns the body of a request, unpacked.
func bodyOf(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	z, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
