package push

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// verdict is what became of a message that was sent.
type verdict uint8

const (
	sent      verdict = iota
	retry             // it did not arrive: it is sent again when the server answers again
	retryFew          // the server failed: it is sent again, three times in all
	dropped           // the server does not want it, now or ever
	ambiguous         // it may have arrived: it is not sent again, because servers would count it twice
)

// outcome is what became of a message, and why.
type outcome struct {
	verdict verdict
	reason  string // a word that is counted
	err     error
	after   time.Duration // the server asks for so long a pause; 0: it says nothing
	reject  uint64        // how many of what was sent the server rejected although it accepted the message
}

// maxAfter bounds the pause that a server asks for.
const maxAfter = 5 * time.Minute

// judge returns what a reply means.
func (c *client) judge(reply *http.Response, message []byte, readErr error) outcome {
	if reply.StatusCode != http.StatusOK {
		return judgeStatus(reply, message)
	}
	if got, _, _ := mime.ParseMediaType(reply.Header.Get("Content-Type")); got != c.protocol.replyType && got != c.protocol.replyType+"+proto" {
		return outcome{verdict: ambiguous, reason: "reply", err: fmt.Errorf("the reply is %s and not %s, as that of a %s server", oneLine(reply.Header.Get("Content-Type")), c.protocol.replyType, c.protocol.name)}
	}
	if c.protocol.grpc {
		return c.judgeGRPC(reply, message, readErr)
	}
	// The status says that everything was accepted, whether or not the rest of the reply came.
	return c.accepted(message)
}

// accepted returns the outcome for a message that the server accepted.
func (c *client) accepted(message []byte) outcome {
	o := outcome{verdict: sent}
	if c.protocol.accepted != nil {
		if n, why := c.protocol.accepted(message); n > 0 {
			o.reject, o.reason, o.err = n, "rejected", fmt.Errorf("the server rejected %d profiles: %s", n, oneLine(why))
		}
	}
	return o
}

// judgeStatus returns what an HTTP status other than 200 means.
func judgeStatus(reply *http.Response, message []byte) outcome {
	code := reply.StatusCode
	o := outcome{verdict: dropped, reason: "http-" + strconv.Itoa(code)}
	text := "the server answers " + oneLine(reply.Status)
	if m := oneLine(string(message)); m != "" {
		text += ": " + m
	}
	switch {
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		o.verdict, o.after = retry, retryAfter(reply.Header.Get("Retry-After"))
	case code >= 500:
		o.verdict = retryFew
	case code >= 300 && code < 400:
		text = fmt.Sprintf("the server redirects to %q, where candid sends nothing: the url must be that of the server itself", oneLine(reply.Header.Get("Location")))
		o.reason = "redirect"
	case code < 300:
		o.verdict, text = sent, ""
		if code != http.StatusNoContent && code != http.StatusAccepted {
			o.verdict, text = ambiguous, "the server answers "+oneLine(reply.Status)
		}
	}
	if text != "" {
		o.err = errors.New(text)
	}
	if o.verdict == sent {
		o.reason = ""
	}
	return o
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(s string) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, maxAfter)
	}
	if t, err := http.ParseTime(s); err == nil {
		return min(max(time.Until(t), 0), maxAfter)
	}
	return 0
}

// oneLine returns a short text of a server for a log: one line, without control characters.
func oneLine(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "…"
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }), " ")
}
