package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"

	"github.com/google/pprof/profile"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// raw is a codec that leaves messages as they are: Parca's generated code is in no module that can be
// had alone.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

var promLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// field calls f for each field of a message that is a message or a string.
func field(b []byte, f func(num protowire.Number, data []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, typ, b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		if typ == protowire.BytesType {
			data, _ := protowire.ConsumeBytes(b)
			if err := f(num, data); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}

// writeRaw does what Parca does with a WriteRawRequest (pkg/normalizer).
func (s *store) writeRaw(request []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Requests++
	invalid := func(reason, format string, args ...any) error {
		s.Refused[reason]++
		return status.Errorf(codes.InvalidArgument, format, args...)
	}
	return field(request, func(num protowire.Number, one []byte) error {
		if num != 2 {
			return invalid("field", "field %d of WriteRawRequest", num)
		}
		labels := map[string]string{}
		var profiles [][]byte
		err := field(one, func(num protowire.Number, data []byte) error {
			if num == 1 { // LabelSet
				return field(data, func(_ protowire.Number, label []byte) error {
					var l [3]string
					err := field(label, func(num protowire.Number, text []byte) error { l[num] = string(text); return nil })
					if _, twice := labels[l[1]]; twice {
						return invalid("label", "duplicate label name: %s", l[1])
					}
					if l[1] != "__name__" && !promLabel.MatchString(l[1]) {
						return invalid("label", "invalid label name: %s", l[1])
					}
					labels[l[1]] = l[2]
					return err
				})
			}
			return field(data, func(num protowire.Number, b []byte) error {
				if num == 1 {
					profiles = append(profiles, b)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if labels["__name__"] == "" {
			return invalid("name", "__name__ is missing")
		}
		for _, b := range profiles {
			p, err := profile.ParseData(b) // compressed or not, as Parca
			if err != nil {
				return invalid("profile", "failed to parse profile: %v", err)
			}
			if err := sequential(p); err != nil {
				return invalid("profile", "invalid profile: %v", err)
			}
			s.keep(labels, p, len(b))
		}
		return nil
	})
}

// sequential checks what Parca's ValidatePprofProfile requires of ids.
func sequential(p *profile.Profile) error {
	for i, m := range p.Mapping {
		if m.ID != uint64(i+1) {
			return fmt.Errorf("mapping id is not sequential")
		}
	}
	for i, f := range p.Function {
		if f.ID != uint64(i+1) {
			return fmt.Errorf("function id is not sequential")
		}
	}
	for i, l := range p.Location {
		if l.ID != uint64(i+1) {
			return fmt.Errorf("location id is not sequential")
		}
	}
	return nil
}

// parca serves Parca's WriteRaw by Google's gRPC library, which has no gzip here, as a build without
// it, and on a second line's URL /got.
func parca([]string) error {
	s := &store{Refused: map[string]int{}}
	encoding.RegisterCodec(raw{})
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		if method != "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw" {
			return status.Errorf(codes.Unimplemented, "method %s", method)
		}
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		var more []byte
		if err := stream.RecvMsg(&more); err != io.EOF {
			return status.Error(codes.Internal, "more than one message")
		}
		if err := s.writeRaw(request); err != nil {
			return err
		}
		return stream.SendMsg(&[]byte{})
	}))
	l, err := listen()
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(l) }()
	var web net.Listener
	if web, err = listen(); err != nil {
		return err
	}
	http.Handle("/got", s)
	go func() { _ = http.Serve(web, nil) }()
	ended()
	return nil
}
