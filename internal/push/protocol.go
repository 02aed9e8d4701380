package push

import (
	"net/http"
	"time"

	"github.com/candid-profiler/candid/internal/format/pprof"
	"github.com/candid-profiler/candid/internal/profile"
)

// protocol is a kind of server.
type protocol struct {
	name string
	path string // of the method, below the URL
	grpc bool   // HTTP/2, frames, the result in the trailer
	gzip bool   // bodies are compressed as a whole
	// contentType is that of requests, replyType that of replies that mean success.
	contentType, replyType string
	oldest                 time.Duration // the age of profiles that the server accepts; 0: any
	// encode returns the message for a part of a series, uncompressed.
	encode func(s *series, p *profile.Profile, sums []pprof.Sum) ([]byte, error)
	// accepted looks at the message of a reply that means success, and returns how many of what was
	// sent the server rejected all the same, and why.
	accepted func(message []byte) (rejected uint64, why string)
}

var protocols = []protocol{
	{
		name: "pyroscope", path: "/push.v1.PusherService/Push", gzip: true,
		contentType: "application/proto", replyType: "application/proto",
		oldest: time.Hour, encode: encodePyroscope,
	},
	{
		name: "otlp", path: "/v1development/profiles", gzip: true,
		contentType: "application/x-protobuf", replyType: "application/x-protobuf",
		encode: encodeOTLP, accepted: acceptedOTLP,
	},
	{
		name: "otlp-grpc", path: "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", grpc: true, gzip: true,
		contentType: "application/grpc+proto", replyType: "application/grpc",
		encode: encodeOTLP, accepted: acceptedOTLP,
	},
	{
		// The profile is compressed, not the message: not every build of Parca's library has gzip.
		name: "parca", path: "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw", grpc: true,
		contentType: "application/grpc+proto", replyType: "application/grpc",
		encode: encodeParca,
	},
}

func protocolOf(name string) *protocol {
	for i := range protocols {
		if protocols[i].name == name {
			return &protocols[i]
		}
	}
	return nil
}

// header returns the headers that all requests have.
func (p *protocol) header(c *Config) http.Header {
	h := http.Header{}
	h.Set("Content-Type", p.contentType)
	if p.gzip && !p.grpc {
		h.Set("Content-Encoding", "gzip")
	}
	if p.grpc {
		h.Set("Te", "trailers")
	}
	if c.Tenant != "" {
		h.Set("X-Scope-Orgid", c.Tenant)
	}
	return h
}
