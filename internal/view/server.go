package view

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/web"
)

// FirstPort is the port that is tried first if none is asked for.
const FirstPort = 7997

// Listen listens on a port of the loopback address: the one asked for, or the next free one from
// FirstPort on if port is 0.
func Listen(port int) (net.Listener, error) {
	listen := func(port int) (net.Listener, error) {
		return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	if port != 0 {
		l, err := listen(port)
		if err != nil {
			return nil, fmt.Errorf("serve the page on port %d: %w; leave --port out to take a free one", port, err)
		}
		return l, nil
	}
	for p := FirstPort; p < FirstPort+100; p++ {
		if l, err := listen(p); err == nil {
			return l, nil
		}
	}
	l, err := listen(0)
	if err != nil {
		return nil, fmt.Errorf("serve the page: %w", err)
	}
	return l, nil
}

// Server shows recordings to browsers on this machine. A client that does not know its address,
// which contains a random token, gets nothing.
type Server struct {
	token      string
	hosts      [2]string    // accepted values of a request's Host
	recordings []*Recording // nil for those of files that nobody has opened by themselves
	files      [2]*file     // two that are only shown together
	http       *http.Server
	clients    clients
	history    *history // of a store; nil: none
	listener   net.Listener

	opening sync.Mutex // held while one of files is read

	mu    sync.Mutex    // guards recordings and pairs
	pairs []*comparison // that pages asked for, the latest last
}

// NewServer returns a server of recordings on l. If it has none, Compare adds two.
func NewServer(l net.Listener, recordings ...*Recording) (*Server, error) {
	if web.ViewJS == "" || web.ViewCSS == "" {
		return nil, errors.New("the page's script is not built in; run make web and build again")
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("serve the page: %w", err)
	}
	s := &Server{
		token: hex.EncodeToString(random[:]), hosts: [2]string{"127.0.0.1:" + port, "localhost:" + port},
		recordings: recordings, listener: l,
	}
	s.http = &http.Server{Handler: s, MaxHeaderBytes: 512 << 10}
	s.clients.watch(s.http)
	return s, nil
}

// URL returns the address of the page.
func (s *Server) URL() string { return "http://" + s.hosts[0] + "/" + s.token + "/" }

// Serve answers until ctx ends, and gives answers that are under way a moment to finish.
func (s *Server) Serve(ctx context.Context) error {
	s.http.BaseContext = func(net.Listener) context.Context { return ctx } // requests of pages that wait end with it
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		late, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.http.Shutdown(late) != nil {
			s.http.Close()
		}
	})
	err := s.http.Serve(s.listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve the page: %w", err)
}

// policy lets the page run and load only what comes from this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP answers a request. Names of other sites that resolve to this machine (DNS rebinding)
// are refused by the Host, everything else by the token.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
		"Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
	if req.Host != s.hosts[0] && req.Host != s.hosts[1] {
		dismiss(w)
		http.Error(w, "this is not the address of the page", http.StatusMisdirectedRequest)
		return
	}
	token, path, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	if subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		dismiss(w)
		http.Error(w, "nothing here: the whole address that candid printed is needed", http.StatusNotFound)
		return
	}
	trust(req)
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		dismiss(w)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	if path == "" && !strings.HasSuffix(req.URL.Path, "/") {
		http.Redirect(w, req, "/"+s.token+"/", http.StatusMovedPermanently)
		return
	}
	if s.history != nil {
		s.history.serve(w, req, path)
		return
	}
	s.route(w, req, path)
}

// route answers a request for what is below the page's address.
func (s *Server) route(w http.ResponseWriter, req *http.Request, path string) {
	switch path {
	case "":
		send(w, "text/html; charset=utf-8", []byte(page))
	case "view.js":
		send(w, "text/javascript; charset=utf-8", []byte(web.ViewJS))
	case "view.css":
		send(w, "text/css; charset=utf-8", []byte(web.ViewCSS))
	case "recordings":
		s.list(w)
	default:
		s.answer(w, req, path)
	}
}

func send(w http.ResponseWriter, kind string, data []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client may be gone
}

func (s *Server) list(w http.ResponseWriter) {
	names := []string{}
	for i := range s.recordings {
		names = append(names, flame.Visible(s.name(i)))
	}
	data, err := (&message{}).finish(names)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, messageType, data)
}

// answer answers RECORDING/QUESTION, such as 0/counts?event=1, or 0-1/counts for two that are
// compared.
func (s *Server) answer(w http.ResponseWriter, req *http.Request, path string) {
	name, question, _ := strings.Cut(path, "/")
	r, err := s.recording(name)
	if r == nil && err == nil {
		http.Error(w, "no such recording", http.StatusNotFound)
		return
	}
	var data []byte
	if err == nil {
		data, err = r.about(w, req, question)
	}
	switch {
	case errors.Is(err, errSent), req.Context().Err() != nil:
		// The client does not wait any more.
	case errors.Is(err, errNoQuestion):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, errGrown):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, ErrQuery):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		send(w, messageType, data)
	}
}

var (
	errNoQuestion = errors.New("no such question")
	// errSent means that the answer was sent already.
	errSent = errors.New("the answer is sent")
)

// about returns the answer to a question about the recording.
func (r *Recording) about(w http.ResponseWriter, req *http.Request, question string) ([]byte, error) {
	ctx, values := req.Context(), req.URL.Query()
	if question == "wait" {
		return waitMessage(ctx, r, values)
	}
	r.lock.RLock()
	defer r.lock.RUnlock()
	if question == "export" {
		name, data, err := r.export(ctx, values)
		if err == nil {
			w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		}
		return data, err
	}
	if question == "tree" && r.grower == nil {
		if err := r.sendTree(w, values); err != nil {
			return nil, err
		}
		return nil, errSent
	}
	if a := answers[question]; a != nil {
		return a(ctx, r, values)
	}
	return nil, errNoQuestion
}

const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="candid">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M1 11h14v4H1z' fill='%23177e89'/%3E%3Cpath d='M1 6h9v4H1z' fill='%23e08e2b'/%3E%3Cpath d='M3 1h5v4H3z' fill='%23c94f7c'/%3E%3C/svg%3E">
<title>candid</title>
<link rel="stylesheet" href="view.css">
</head>
<body>
<noscript>This page is drawn by the script that candid serves with it. Please allow it to run: it asks nobody but candid for anything.</noscript>
<script src="view.js"></script>
</body>
</html>
`
