package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/view"
)

// viewStore serves the page of a store.
func viewStore(cmd *cobra.Command, from *storeFlags, flags *filterFlags, port int, open, threads, raw bool) error {
	s, spec, err := from.opened(flags)
	if err != nil {
		return err
	}
	p, err := s.read(cmd.ErrOrStderr(), s.stored, profile.KeepSamples, nil)
	if err != nil {
		return err
	}
	f, err := spec.Choose(p)
	if err != nil {
		return filterFailure(s.name(s.stored), err)
	}
	r, err := view.Open(s.name(s.stored), p)
	if err != nil {
		return failed(fmt.Errorf("view %s: %w", from.dir, err))
	}
	server, err := newServer(port, r)
	if err != nil {
		return failed(err)
	}
	return serve(cmd, server, open, rawPage(view.Address(p, f, threads), raw))
}
