package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the Makefile from the newest tag.
var release = ""

// version is the release, else the commit that the binary was built from.
func version() string {
	if release != "" {
		return release
	}
	if bi, ok := debug.ReadBuildInfo(); ok {
		rev, dirty := "", ""
		for _, s := range bi.Settings {
			switch {
			case s.Key == "vcs.revision":
				rev = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+changes"
			}
		}
		if len(rev) >= 12 {
			return "devel-" + rev[:12] + dirty
		}
	}
	return "devel"
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print candid's version",
		Long:    "Print candid's version, what it was built for, and by which Go.",
		Example: `  candid version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "candid %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}
