package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/view"
)

// viewStore serves the page of a store.
func viewStore(cmd *cobra.Command, from *storeFlags, flags *filterFlags, port int, open, threads, raw bool) error {
	rest := *flags
	asked := rest.words.From+rest.words.To != ""
	s, err := from.open(&rest.words)
	if err != nil {
		return err
	}
	spec, err := rest.spec()
	if err != nil {
		return err
	}
	if spec.Filters() || spec.Event() != "" || threads || raw {
		return usage("the page of a store is filtered in the page: of the filters view --store takes --service, --from and --to")
	}
	server, err := newServer(port)
	if err != nil {
		return failed(err)
	}
	begin, end := s.from, s.to
	if !asked {
		begin, end = time.Time{}, time.Time{}
	}
	server.ServeStore(from.dir, s.Reader)
	return serve(cmd, server, open, view.StoreAddress(from.only, begin, end))
}
