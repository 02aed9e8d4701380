package push

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// The protocol is described in
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md

// frame puts the head of gRPC's before a message: whether it is compressed, and its length.
func frame(message []byte, compressed bool) []byte {
	b := make([]byte, 5, 5+len(message))
	if compressed {
		b[0] = 1
	}
	binary.BigEndian.PutUint32(b[1:], uint32(len(message)))
	return append(b, message...)
}

// unframe returns the message of a reply; nil if there is none or it is compressed, which candid does
// not ask for.
func unframe(b []byte) []byte {
	if len(b) < 5 || b[0] != 0 || uint64(binary.BigEndian.Uint32(b[1:])) > uint64(len(b)-5) {
		return nil
	}
	return b[5:][:binary.BigEndian.Uint32(b[1:])]
}

// Codes of gRPC, https://github.com/grpc/grpc/blob/master/doc/statuscodes.md
const (
	grpcOK                = 0
	grpcCanceled          = 1
	grpcUnknown           = 2
	grpcDeadlineExceeded  = 4
	grpcResourceExhausted = 8
	grpcAborted           = 10
	grpcInternal          = 13
	grpcUnavailable       = 14
	grpcDataLoss          = 15
)

// judgeGRPC returns what the result of a call means.
func (c *client) judgeGRPC(reply *http.Response, message []byte, readErr error) outcome {
	status := reply.Trailer.Get("Grpc-Status")
	text := reply.Trailer.Get("Grpc-Message")
	if status == "" { // a reply without a body has only headers
		status, text = reply.Header.Get("Grpc-Status"), reply.Header.Get("Grpc-Message")
	}
	code, err := strconv.ParseUint(status, 10, 16)
	if err != nil {
		if readErr == nil {
			readErr = errors.New("it has no status")
		}
		return outcome{verdict: ambiguous, reason: "reply", err: fmt.Errorf("everything was sent, but the reply is not whole: %w", readErr)}
	}
	if code == grpcOK {
		return c.accepted(unframe(message))
	}
	if s, err := url.PathUnescape(text); err == nil {
		text = s
	}
	o := outcome{verdict: dropped, reason: "grpc-" + strconv.FormatUint(code, 10), err: fmt.Errorf("the server answers with gRPC's code %d: %s", code, oneLine(text))}
	switch code {
	// The counterparts of 408, 429 and 503 of HTTP.
	case grpcCanceled, grpcDeadlineExceeded, grpcResourceExhausted, grpcUnavailable:
		o.verdict, o.after = retry, pushback(reply)
	// The counterparts of other 5xx.
	case grpcUnknown, grpcAborted, grpcInternal, grpcDataLoss:
		o.verdict = retryFew
	}
	return o
}

// pushback reads how long the server asks to wait, in ms: gRPC's header, or HTTP's.
func pushback(reply *http.Response) time.Duration {
	for _, h := range []http.Header{reply.Trailer, reply.Header} {
		if n, err := strconv.ParseUint(h.Get("Grpc-Retry-Pushback-Ms"), 10, 32); err == nil {
			return min(time.Duration(n)*time.Millisecond, maxAfter)
		}
	}
	return retryAfter(reply.Header.Get("Retry-After"))
}
