package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/filter"
	"github.com/candid-profiler/candid/internal/format"
	"github.com/candid-profiler/candid/internal/gctune"
	"github.com/candid-profiler/candid/internal/memlimit"
	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/view"
)

func newView() *cobra.Command {
	var (
		filter  filterFlags
		port    int
		open    bool
		diff    bool
		threads bool
		raw     bool
		from    storeFlags
	)
	cmd := &cobra.Command{
		Use:   "view FILE... | view --store DIR",
		Short: "Look at profiles in a browser",
		Long: `Look at profiles in a browser: flame graph, call tree, methods, callers, threads
over time, and how far all of it can be trusted. Every view shows what the filters
leave: a stretch of time, threads, states, methods. With --diff two files are one page that shows
what changed, also what has vanished; of several files any two can be compared in the page. They
can be swapped there, and the page's address keeps which is compared with which. A .jfr file, also
.jfr.gz or .jfr.zst, that candid is still recording is followed: what is new is on the page within
two seconds. So is the folder in which a JVM keeps what it records itself (jcmd PID JFR.configure
tells where that is; from JDK 14 on with what it wrote a second ago), and what async-profiler
writes, as often as it finishes a part of it (asprof --chunktime 5s).

` + filterHelp + `
Of one file they stand in the page, where they can be taken away and changed; with
--label, of several files, and with --diff, only what passes is shown.

` + storeHelp + `

The page is served to this machine only, at an address with a random token that is
printed. It is in this program whole and asks for nothing from elsewhere. Ctrl-C ends it.
Over SSH it is also printed how your own machine gets there.

FILE is a profile in a format that candid reads:
` + format.HelpRead(),
		Example: `  candid view app.jfr                   prints where the page is
  candid view app.jfr --open            opens it in the browser
  candid view app.jfr --thread '^http-' --from 30s
  candid view a.jfr b.jfr               two to switch between, and to compare
  candid record -p 1234 -o app.jfr &    and, while it is recorded:
  candid view app.jfr                   the page follows
  candid view /tmp/2026_11_21_17_30_05_1234     a JVM's own recording, while it goes on
  candid view --diff before.jfr after.jfr
  candid view --store /var/lib/candid   the services of a machine, over days`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := from.check(args); err != nil {
				return err
			}
			if len(args) == 0 && from.dir == "" {
				return usage("give a file to look at")
			}
			if port < 0 || port > 65535 {
				return usage("--port %d is no port", port)
			}
			if diff && len(args) != 2 {
				return usage("--diff compares two files, not %d", len(args))
			}
			if from.dir != "" {
				if diff {
					return usage("--diff compares two files; the page of a store compares with earlier times")
				}
				return viewStore(cmd, &from, &filter, port, open, threads, raw)
			}
			spec, err := filter.spec()
			if err != nil {
				return err
			}
			profiles := make([]*profile.Profile, len(args))
			growing := make([]*growing, len(args))
			inPage := len(args) == 1 && filter.words.Labels == nil // the page has no filter for labels
			page := ""
			for i, file := range args {
				if !diff && (inPage || !spec.Filters()) {
					growing[i] = follows(file)
				}
				if growing[i] != nil && !spec.Filters() && !threads && !cmd.Flags().Changed("event") {
					continue // nothing needs to be known about it
				}
				if inPage {
					if profiles[i], err = format.Read(file); err != nil {
						return failed(err)
					}
					f, err := spec.Choose(profiles[i])
					if err != nil {
						return filterFailure(file, err)
					}
					page = view.Address(profiles[i], f, threads)
					continue
				}
				if profiles[i], err = passing(cmd.ErrOrStderr(), &filter, spec, file); err != nil {
					return err
				}
				if len(args) == 1 {
					page = view.Address(profiles[i], profile.Filter{Event: profiles[i].FirstEvent()}, threads)
				}
			}
			if diff {
				s, err := newServer(port)
				if err == nil {
					err = s.Compare([2]string{args[0], args[1]}, profiles[0], profiles[1], func(i int) (*profile.Profile, error) {
						return passing(io.Discard, &filter, spec, args[i])
					})
				}
				if err != nil {
					return failed(fmt.Errorf("compare %s and %s: %w", args[0], args[1], err))
				}
				return serve(cmd, s, open, rawPage(view.Compared, raw))
			}
			ctx, stop := context.WithCancel(cmd.Context())
			defer stop()
			var recordings []*view.Recording
			for i, p := range profiles {
				if g := growing[i]; g != nil {
					recordings = append(recordings, g.r)
					go g.follow(ctx, func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), "candid: "+profile.PlainText(line)) })
					continue
				}
				r, err := view.Open(args[i], p)
				if err != nil {
					return failed(fmt.Errorf("view %s: %w", args[i], err))
				}
				recordings = append(recordings, r)
			}
			s, err := newServer(port, recordings...)
			if err != nil {
				return failed(err)
			}
			return serve(cmd, s, open, rawPage(page, raw))
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.IntVar(&port, "port", 0, fmt.Sprintf("`PORT` on 127.0.0.1 (default the next free one from %d on)", view.FirstPort))
	fl.BoolVar(&diff, "diff", false, "compare two files: what went up and down, as shares of each")
	fl.BoolVar(&open, "open", false, "open the page in the browser")
	fl.BoolVarP(&threads, "threads", "t", false, "give each thread a root of its own in the flame graph")
	fl.BoolVar(&raw, "raw", false, rawHelp)
	from.add(cmd)
	filter.addReader(cmd, "the `NAME` of the event to show first (default the first that has samples)")
	addMaxMemory(cmd)
	return cmd
}

// rawPage returns what the page shows first; if raw is set, samples that came late are shown where
// they came.
func rawPage(page string, raw bool) string {
	switch {
	case !raw:
		return page
	case page == "":
		return "#raw=1"
	}
	return page + "&raw=1"
}

// passing reads the part of a file that passes the filters, and reports how much that is.
func passing(w io.Writer, flags *filterFlags, spec *filter.Spec, file string) (*profile.Profile, error) {
	p, err := flags.read(w, spec, file, profile.KeepSamples, nil)
	if err != nil {
		return nil, err
	}
	if f := spec.String(); f != "" {
		p.Meta.Notes = append([]string{"only what passes is shown: " + f}, p.Meta.Notes...)
	}
	return p, nil
}

// serve serves a server's recordings until Ctrl-C; page is what the page shows first, as it appears
// in its address.
func serve(cmd *cobra.Command, s *view.Server, open bool, page string) error {
	ctx, signals := interruptible(cmd.Context(), false, func() {})
	defer signals.stop()
	fmt.Fprintln(cmd.OutOrStdout(), s.URL()+page)
	fmt.Fprintln(cmd.ErrOrStderr(), untilCtrlC)
	if open {
		defer showBrowser(cmd, s.URL()+page)()
	} else {
		tellRemote(cmd, s.URL())
	}
	go gctune.Settle() // the page need not wait for it
	return failed(s.Serve(ctx))
}

const untilCtrlC = "candid: the page is there until Ctrl-C is pressed"

func newServer(port int, recordings ...*view.Recording) (*view.Server, error) {
	memlimit.OnlyMax() // from now on files are read beside requests
	l, err := view.Listen(port)
	if err != nil {
		return nil, err
	}
	return view.NewServer(l, recordings...)
}

// showBrowser opens the page. The returned function is called when candid ends.
func showBrowser(cmd *cobra.Command, url string) (done func()) {
	remove, err := openBrowser(url)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "candid: no browser could be opened (%v): open the address above yourself\n", err)
		tellRemote(cmd, url)
		return func() {}
	}
	return remove
}
