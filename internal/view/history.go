package view

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/store"
	"github.com/candid-profiler/candid/internal/store/captures"
	"github.com/candid-profiler/candid/web"
)

// history serves the page of a store: the services, and the CPU time over days as a strip. What the
// reader chooses of it is shown below by the page of recordings, in a frame.
type history struct {
	name  string
	store *store.Reader

	mu    sync.Mutex
	shown []*shown // the latest last
}

// shown is a chosen part of the store, and what it is compared with, as recordings.
type shown struct {
	of     portion
	once   sync.Once
	server *Server
	err    error
}

// portion is a range of time of a service, in ms since 1970, and when the range begins that it is
// compared with; -1: none. Or it is a capture.
type portion struct {
	from, to, against int64
	service           string
	capture           string // the name of a capture's file; if it is not "" the rest means nothing
}

// keptShown is how many parts of a store are kept ready.
const keptShown = 3

// ServeStore lets a server that has no recordings serve a store. name is for people.
func (s *Server) ServeStore(name string, r *store.Reader) {
	s.history = &history{name: name, store: r}
}

// StoreAddress returns the part of the page's address, from # on, with which the page of a store
// opens at a service and a range of time.
func StoreAddress(service string, from, to time.Time) string {
	q := url.Values{}
	if service != "" {
		q.Set("service", service)
	}
	if !from.IsZero() {
		q.Set("from", strconv.FormatInt(from.UnixMilli(), 10))
		q.Set("to", strconv.FormatInt(to.UnixMilli(), 10))
	}
	if len(q) == 0 {
		return ""
	}
	return "#" + q.Encode()
}

// framed lets the page of a store show that of a recording in a frame.
func framed(h http.Header) {
	h.Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'", "frame-src 'self'; frame-ancestors 'self'", 1))
	h.Set("X-Frame-Options", "SAMEORIGIN")
}

func (h *history) serve(w http.ResponseWriter, req *http.Request, path string) {
	framed(w.Header())
	switch path {
	case "":
		send(w, "text/html; charset=utf-8", []byte(storePage))
	case "store.js":
		send(w, "text/javascript; charset=utf-8", []byte(web.StoreJS))
	case "store.css":
		send(w, "text/css; charset=utf-8", []byte(web.StoreCSS))
	case "about", "services", "strip", "captures":
		answer, err := h.about(path, req.URL.Query())
		if err != nil {
			code := http.StatusInternalServerError
			if errors.Is(err, ErrQuery) {
				code = http.StatusBadRequest
			}
			http.Error(w, err.Error(), code)
			return
		}
		data, err := json.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		send(w, "application/json", data)
	default:
		h.recording(w, req, path)
	}
}

// rangeOf reads a range of time.
func rangeOf(v url.Values) (from, to time.Time, err error) {
	a, err1 := number(v, "from", 0)
	b, err2 := number(v, "to", 0)
	if err := errors.Join(err1, err2); err != nil {
		return from, to, err
	}
	if a >= b || b > 1<<43 {
		return from, to, fmt.Errorf("%w: no range of time", ErrQuery)
	}
	return time.UnixMilli(int64(a)), time.UnixMilli(int64(b)), nil
}

// mostBars is how many parts a strip may have.
const mostBars = 4096

func (h *history) about(question string, v url.Values) (any, error) {
	if question == "about" {
		from, to, err := h.store.Range()
		if err != nil {
			return nil, err
		}
		out := map[string]any{"name": h.name, "from": 0, "to": 0, "damage": append([]string{}, h.store.Damage()...)}
		if !from.IsZero() {
			out["from"], out["to"] = from.UnixMilli(), to.UnixMilli()
		}
		return out, nil
	}
	from, to, err := rangeOf(v)
	if err != nil {
		return nil, err
	}
	if question == "services" {
		list, err := h.store.Services(from, to)
		if err != nil {
			return nil, err
		}
		type row struct {
			Name    string `json:"name"`
			CPU     int64  `json:"cpu"` // ns
			Samples uint64 `json:"samples"`
		}
		rows := make([]row, len(list))
		for i, u := range list {
			rows[i] = row{u.Name, int64(u.CPU), u.Samples}
		}
		return rows, nil
	}
	if question == "captures" {
		return h.captures(from, to, v.Get("service"))
	}
	n, err := number(v, "n", 200)
	if err != nil || n == 0 || n > mostBars {
		return nil, fmt.Errorf("%w: %d bars", ErrQuery, n)
	}
	strip, err := h.store.Strip(from, to, v.Get("service"), int(n))
	if err != nil {
		return nil, err
	}
	return map[string]any{"cpu": strip.CPU, "stored": strip.Stored}, nil
}

// recording answers show/FROM-TO/AGAINST/SERVICE/... and capture/FILE/..., whose rest is what the page of
// recordings asks. AGAINST is - or when the range begins that it is compared with, and SERVICE is = and its name.
func (h *history) recording(w http.ResponseWriter, req *http.Request, path string) {
	// The path is taken apart before %2F in a service becomes a slash.
	words := strings.SplitN(req.URL.EscapedPath(), "/", 7)
	if len(words) > 4 && words[2] == "capture" {
		file, err := url.PathUnescape(words[3])
		if err != nil {
			http.NotFound(w, req)
			return
		}
		h.show(w, req, portion{capture: file}, strings.Join(words[4:], "/"))
		return
	}
	if len(words) < 7 || words[2] != "show" {
		http.NotFound(w, req)
		return
	}
	from, to, _ := strings.Cut(words[3], "-")
	a, err1 := strconv.ParseUint(from, 10, 43)
	b, err2 := strconv.ParseUint(to, 10, 43)
	of := portion{from: int64(a), to: int64(b), against: -1}
	var err3 error
	if words[4] != "-" {
		var against uint64
		against, err3 = strconv.ParseUint(words[4], 10, 43)
		of.against = int64(against)
	}
	service, err4 := url.PathUnescape(words[5])
	if errors.Join(err1, err2, err3, err4) != nil || a >= b || !strings.HasPrefix(service, "=") {
		http.NotFound(w, req)
		return
	}
	of.service = service[1:]
	h.show(w, req, of, words[6])
}

// show answers what the page of recordings asks about a part of the store.
func (h *history) show(w http.ResponseWriter, req *http.Request, of portion, question string) {
	s := h.part(of)
	s.once.Do(func() { s.server, s.err = h.open(of) })
	if s.err != nil {
		h.mu.Lock()
		h.shown = slices.DeleteFunc(h.shown, func(x *shown) bool { return x == s })
		h.mu.Unlock()
		code := http.StatusInternalServerError
		if errors.Is(s.err, captures.ErrNone) {
			code = http.StatusNotFound
		}
		http.Error(w, s.err.Error(), code)
		return
	}
	s.server.route(w, req, question)
}

func (h *history) part(of portion) *shown {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.shown, func(s *shown) bool { return s.of == of })
	s := &shown{of: of}
	if i >= 0 {
		s = h.shown[i]
		h.shown = slices.Delete(h.shown, i, i+1)
	}
	h.shown = append(h.shown, s) // moved to the end, as the latest
	if len(h.shown) > keptShown {
		h.shown = slices.Delete(h.shown, 0, 1)
	}
	return s
}

// open makes recordings of a part of the store.
func (h *history) open(of portion) (*Server, error) {
	if of.capture != "" {
		return h.openCapture(of.capture)
	}
	read := func(from int64) (*profile.Profile, string, error) {
		begin, end := time.UnixMilli(from), time.UnixMilli(from+of.to-of.from)
		p, err := h.read(begin, end, of.service)
		if err != nil {
			return nil, "", err
		}
		const form = "2006-01-02 15:04:05"
		who := of.service
		if who == "" {
			who = "all services"
		}
		return p, who + ", " + begin.Format(form) + " to " + end.Format(form), nil
	}
	p, name, err := read(of.from)
	if err != nil {
		return nil, err
	}
	if p.Meta.Command == "" || of.service != "" {
		p.Meta.Command = name
	}
	s := &Server{}
	if of.against < 0 {
		r, err := Open(name, p)
		if err != nil {
			return nil, err
		}
		s.recordings = []*Recording{r}
		return s, nil
	}
	base, baseName, err := read(of.against)
	if err != nil {
		return nil, err
	}
	err = s.Compare([2]string{baseName, name}, base, p, func(which int) (*profile.Profile, error) {
		p, _, err := read([2]int64{of.against, of.from}[which])
		return p, err
	})
	return s, err
}

// mostShown is how many samples are shown one by one.
const mostShown = 3_000_000

func (h *history) read(from, to time.Time, service string) (*profile.Profile, error) {
	list, err := h.store.Services(from, to)
	if err != nil {
		return nil, err
	}
	samples := uint64(0)
	for _, u := range list {
		if service == "" || u.Name == service {
			samples += u.Samples
		}
	}
	q := store.Query{From: from, To: to, Service: service}
	if samples > mostShown {
		q.Every = max(to.Sub(from)/1000, time.Minute).Truncate(time.Second)
	}
	return h.store.Profile(q)
}

const storePage = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="candid">
<title>candid</title>
<link rel="stylesheet" href="store.css">
</head>
<body>
<noscript>This page is drawn by the script that candid serves with it. Please allow it to run: it asks nobody but candid for anything.</noscript>
<script src="store.js"></script>
</body>
</html>
`
