// Servers is what candid's tests push profiles to: OpenTelemetry's Collector itself; Pyroscope's push API,
// from Grafana's module, with the rules of its distributor; Parca's gRPC service, served by Google's
// library; and a decoder of OTLP by the Collector's pdata. It is a module of its own, so that candid
// does not depend on any of them.
//
//	servers collector ARGUMENTS          as the Collector's own command
//	servers pyroscope                    prints its URL, and serves until its standard input ends
//	servers parca                        likewise
//	servers sink                         OTLP/HTTP, likewise: where the Collector exports to
//	servers decode FILE                  prints what an OTLP file holds, as JSON
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: servers collector|pyroscope|parca|sink|decode …")
		os.Exit(2)
	}
	run, ok := map[string]func([]string) error{"collector": collector, "pyroscope": pyroscope, "parca": parca, "decode": decode, "sink": sink}[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "no server is called %q\n", os.Args[1])
		os.Exit(2)
	}
	if err := run(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
