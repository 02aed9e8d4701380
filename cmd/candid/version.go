package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the Makefile from the newest tag.
var release = ""

// version returns the release, otherwise the commit that the binary was built from.
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

// versionLine returns candid's name, version and platform.
func versionLine() string {
	return fmt.Sprintf("candid %s %s/%s %s", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print candid's version",
		Long:  "Print candid's version, what it was built for, and by which Go.",
		Example: `  candid version
  candid version --json | jq -r .version`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return failed(enc.Encode(map[string]string{
					"schema": "candid.version/1", "version": version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "go": runtime.Version(),
				}))
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return failed(err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
