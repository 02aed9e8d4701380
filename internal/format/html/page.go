package html

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"

	"github.com/candid-profiler/candid/internal/flame"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/web"
)

// Split selects the roots of the graph when the page opens. The reader can change it.
type Split uint8

// The values of Split.
const (
	SplitNone    Split = iota // all threads merged
	SplitProcess              // a root for each process
	SplitThread               // a root for each thread
)

// String returns the name that the page uses.
func (s Split) String() string {
	switch s {
	case SplitProcess:
		return "process"
	case SplitThread:
		return "thread"
	}
	return "none"
}

// Options select how the page opens.
type Options struct {
	Title string // of the page; by default what was profiled
	Split Split

	compared *compared // two recordings in one; nil: there is only one
}

// ErrNotBuilt is returned if the page's script was not built into this program.
var ErrNotBuilt = errors.New("the page's script is not built in; run make web and build again")

func title(p *profile.Profile, o Options) string {
	switch {
	case o.Title != "":
		return o.Title
	case p.Meta.Command != "":
		return p.Meta.Command
	case len(p.Processes) == 1:
		return p.Processes[0].Command
	}
	return "profile"
}

// before begins the page. Its policy permits only the built-in script and style, by their hashes.
// The page has nothing to load: everything else is forbidden.
const before = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%s'; style-src 'sha256-%s'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="candid">
<link rel="icon" href="data:image/svg+xml,%%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%%3E%%3Cpath d='M1 11h14v4H1z' fill='%%23177e89'/%%3E%%3Cpath d='M1 6h9v4H1z' fill='%%23e08e2b'/%%3E%%3Cpath d='M3 1h5v4H3z' fill='%%23c94f7c'/%%3E%%3C/svg%%3E">
<title>%s · candid</title>
<style>%s</style>
</head>
<body>
<noscript>This flame graph is drawn by the script in this file. Please allow it to run: it asks no server for anything.</noscript>
<script type="application/octet-stream" id="data">`

const after = `</script>
<script>%s</script>
</body>
</html>
`

// Write writes p to w as one HTML file. Every sample of p is in it: frames that
// are too narrow to see are drawn together, never left out. The error wraps
// profile.ErrInvalid if p refers to what it does not hold.
func Write(w io.Writer, p *profile.Profile, o Options) error {
	if web.FlameJS == "" || web.FlameCSS == "" {
		return ErrNotBuilt
	}
	t, err := flame.Merge(p)
	if err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if _, err := fmt.Fprintf(b, before, hash(web.FlameJS), hash(web.FlameCSS),
		html.EscapeString(flame.Visible(title(p, o))), web.FlameCSS); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	if err := encode(b, p, t, o); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	if _, err := fmt.Fprintf(b, after, web.FlameJS); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}
