package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
)

// Client asks a running agent through its socket.
type Client struct{ path string }

// NewClient returns a client for the socket at a path.
func NewClient(path string) *Client { return &Client{path} }

// ErrNoAgent is wrapped by errors that say that no agent answers.
var ErrNoAgent = errors.New("no agent answers")

// maxAnswer bounds an answer in bytes.
const maxAnswer = 64 << 20

// Status asks what the agent is doing.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	return &s, c.ask(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Services asks which services there are.
func (c *Client) Services(ctx context.Context) (*Services, error) {
	var s Services
	return &s, c.ask(ctx, http.MethodGet, "/v1/services", nil, &s)
}

// Capture asks for a capture and waits for it. If ctx ends before, what was captured until then is
// stored.
func (c *Client) Capture(ctx context.Context, r CaptureRequest) (*CaptureResult, error) {
	var res CaptureResult
	return &res, c.ask(ctx, http.MethodPost, "/v1/capture", r, &res)
}

func (c *Client) ask(ctx context.Context, method, path string, body, into any) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.path)
	}
	t := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, in)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w on %s: is it running? (systemctl status candid-agent; candid agent run --config FILE; --socket if it listens elsewhere)", ErrNoAgent, c.path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the agent's socket %s is for its user and group only: use sudo, or join the group: %w", c.path, err)
	case err != nil:
		return fmt.Errorf("ask the agent on %s: %w", c.path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the agent on %s: %w", c.path, err)
	}
	if resp.StatusCode != http.StatusOK {
		var r refusal
		if json.Unmarshal(b, &r) == nil && r.Error != "" {
			return errors.New(r.Error)
		}
		return fmt.Errorf("the agent on %s answered %s", c.path, resp.Status)
	}
	return json.Unmarshal(b, into)
}
