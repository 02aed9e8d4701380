package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/record"
	"github.com/candid-profiler/candid/internal/view"
)

// livePage shows a recording in the browser while it is being made.
type livePage struct {
	r      *view.Recording
	server *view.Server
	say    func(string)
	ctx    context.Context // for following
	cancel context.CancelFunc
	end    context.CancelFunc // ends serving
	served chan error
	tails  sync.WaitGroup
	shown  func() // removes what leads the browser to the page
}

// newLivePage serves the page and opens it. The address goes to standard error, so that it is not
// mixed with the output of a launched program.
func newLivePage(cmd *cobra.Command, path string, say func(string)) (*livePage, error) {
	r := view.OpenGrowing(path)
	s, err := newServer(0, r)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	p := &livePage{r: r, server: s, say: say, end: end, served: make(chan error, 1)}
	p.ctx, p.cancel = context.WithCancel(ctx)
	go func() { p.served <- s.Serve(ctx) }()
	fmt.Fprintln(cmd.ErrOrStderr(), "candid: the page is at "+s.URL())
	p.shown = showBrowser(cmd, s.URL())
	return p, nil
}

// follow updates the page as the file grows.
func (p *livePage) follow(path string) {
	p.tails.Go(func() {
		if err := view.Follow(p.ctx, p.r, path, func() bool { return true }); err != nil {
			p.say("the page does not follow the recording: " + err.Error())
		}
	})
}

// keep shows what was recorded until Ctrl-C.
func (p *livePage) keep(cmd *cobra.Command, res *record.Result) error {
	ctx, signals := interruptible(cmd.Context(), false, func() {})
	defer signals.stop()
	p.cancel()
	p.tails.Wait()
	if err := p.r.Finish(res.Profile); err != nil {
		return failed(err)
	}
	fmt.Fprintln(cmd.ErrOrStderr(), untilCtrlC+": "+p.server.URL())
	select {
	case <-ctx.Done():
		p.end()
		return failed(<-p.served)
	case err := <-p.served:
		return failed(err)
	}
}

// close ends the page.
func (p *livePage) close() {
	p.end()
	p.shown()
}
