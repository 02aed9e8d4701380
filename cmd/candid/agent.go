package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/candid-profiler/candid/internal/agent"
	"github.com/candid-profiler/candid/internal/agent/config"
	"github.com/candid-profiler/candid/internal/report"
)

func newAgent() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Profile a machine for good: a history on disk, pushed to servers, by service",
		Long: `Record everything that runs on this machine, always, at a low rate. One file says
which process belongs to which service, where the history is kept and where it is
sent. docs/agent.md describes the file.`,
		Example: `  candid agent check --config /etc/candid/agent.yaml     what the file means, what is wrong with it
  sudo candid agent run --config /etc/candid/agent.yaml  until it gets SIGTERM
  candid agent status                                    what it does and what it costs
  candid agent services                                  which services use the CPUs
  candid agent capture --service shop -d 30s -F 999      a recording of one service in detail
  candid report --store /var/lib/candid --service shop --from -1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAgentRun(), newAgentCheck(), newAgentStatus(), newAgentServices(), newAgentCapture())
	return cmd
}

const defaultConfig = "/etc/candid/agent.yaml"

func configFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "config", defaultConfig, "the agent's `FILE`")
}

// agentFailure returns an error of the agent with its exit code.
func agentFailure(err error) error {
	var wrong *config.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return &codedError{exitUsage, err}
	case errors.Is(err, os.ErrNotExist):
		return &codedError{exitUsage, fmt.Errorf("%w: name the agent's file with --config; docs/agent.md has one to begin with", err)}
	}
	return failed(recordFailure(err))
}

func newAgentRun() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Record this machine until SIGTERM",
		Long: `Record all processes of this machine until SIGTERM or Ctrl-C; what was sampled is
stored and pushed before it ends. SIGHUP reads the file again: if it is wrong,
the old one stays in force, and a line says why.`,
		Example: `  sudo candid agent run --config /etc/candid/agent.yaml
  sudo systemctl reload candid-agent     after the file was changed`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			hup := make(chan os.Signal, 1)
			signal.Notify(hup, syscall.SIGHUP)
			defer signal.Stop(hup)
			reload := make(chan struct{}, 1)
			go func() {
				for {
					select {
					case <-ctx.Done():
						return
					case <-hup:
						select {
						case reload <- struct{}{}:
						default:
						}
					}
				}
			}()
			stderr := cmd.ErrOrStderr()
			confineAgent()
			return agentFailure(agent.Run(ctx, agent.Options{
				Path: path, Version: version(), Reload: reload, Log: func(line string) { fmt.Fprintln(stderr, "candid: "+oneLine(line)) },
				Ready: notifyReady,
			}))
		},
	}
	configFlag(cmd, &path)
	return cmd
}

func newAgentCheck() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say what the agent's file means, and what is wrong with it",
		Long: `Say in plain words what the agent's file means. What is wrong with it is told by
line, all of it at once; then the exit code is 2. Files that it names and that
cannot be read here are told too; then the exit code is 1.`,
		Example: `  candid agent check --config /etc/candid/agent.yaml`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(path)
			var wrong *config.Error
			if errors.As(err, &wrong) {
				for _, p := range wrong.Problems {
					fmt.Fprintf(cmd.ErrOrStderr(), "candid: %s: %s\n", path, p)
				}
				return &codedError{exitUsage, nil}
			}
			if err != nil {
				return agentFailure(err)
			}
			out := cmd.OutOrStdout()
			for _, line := range c.Describe() {
				fmt.Fprintln(out, line)
			}
			fmt.Fprintln(out, "socket: candid agent status, services and capture ask through "+strings.Join(agent.SocketPaths(c), " or "))
			missing := c.Missing()
			for _, p := range missing {
				fmt.Fprintf(cmd.ErrOrStderr(), "candid: %s: %s\n", path, p)
			}
			if len(missing) > 0 {
				return &codedError{exitFailed, nil}
			}
			return nil
		},
	}
	configFlag(cmd, &path)
	return cmd
}

// askFlags are those of commands that ask a running agent.
type askFlags struct {
	socket, config string
	json           bool
}

func (f *askFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.socket, "socket", "", "`PATH` of the agent's socket, if it is neither the default nor that of --config")
	cmd.Flags().StringVar(&f.config, "config", "", "the agent's `FILE`, which says where its socket is")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
}

// client returns a client of the agent that is meant.
func (f *askFlags) client() (*agent.Client, error) {
	switch {
	case f.socket != "":
		return agent.NewClient(f.socket), nil
	case f.config != "":
		c, err := config.Load(f.config)
		if err != nil {
			return nil, agentFailure(err)
		}
		return agent.NewClient(agent.SocketPaths(c)[0]), nil
	}
	if _, err := os.Lstat(agent.DefaultSocket()); err != nil {
		if c, err := config.Load(defaultConfig); err == nil {
			return agent.NewClient(agent.SocketPaths(c)[0]), nil
		}
	}
	return agent.NewClient(agent.DefaultSocket()), nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return failed(enc.Encode(v))
}

func newAgentStatus() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "What a running agent does, and what it costs",
		Example: "  candid agent status\n  candid agent status --json | jq .lost",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return failed(err)
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), s)
			}
			printStatus(cmd.OutOrStdout(), s)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func printStatus(out io.Writer, s *agent.Status) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("agent", "%s, process %d, since %s (%s)", s.Version, s.PID, s.Began.Format(time.DateTime), config.Duration(time.Since(s.Began).Truncate(time.Second)))
	line("file", "%s, read %s", s.File, s.Loaded.Format(time.DateTime))
	if s.Refused != "" {
		line("", "its present content is refused: %s", s.Refused)
	}
	rate := fmt.Sprintf("%.4g Hz", s.Rate)
	if s.Why != "" {
		rate += fmt.Sprintf(" instead of %.4g: %s", s.RateAsked, s.Why)
	}
	line("sampling", "%s; %s", rate, s.Engine)
	samples := fmt.Sprintf("%d, %d lost", s.Samples, s.Lost)
	if s.Complete != nil {
		samples += fmt.Sprintf(", %.1f %% of the stacks complete", *s.Complete*100)
	}
	line("samples", "%s", samples)
	line("cost", "%s of CPU, %.2f %% of the machine; %s of memory", s.CPU.Round(time.Millisecond), s.CPUShare*100, config.Bytes(int64(s.Memory)))
	switch st := s.Store; {
	case st == nil:
		line("store", "none")
	default:
		last := "nothing stored so far"
		if !st.Last.IsZero() {
			last = "up to " + st.Last.Format(time.TimeOnly)
		}
		if st.Errors > 0 {
			last += fmt.Sprintf(", %d parts could not be stored", st.Errors)
		}
		line("store", "%s, %s, %s", st.Dir, config.Bytes(st.Bytes), last)
	}
	for _, p := range s.Push {
		text := fmt.Sprintf("%s (%s): %d sent, %d waiting, %d dropped, %d ambiguous", p.URL, p.Type, p.Sent, p.Unsent, p.Dropped, p.Ambiguous)
		if p.Oldest > 0 {
			text += ", the oldest for " + config.Duration(p.Oldest.Truncate(time.Second))
		}
		if !p.Sampled {
			text += "; this host is not among those that push (probability)"
		}
		if p.Error != "" {
			text += "; " + p.Error
		}
		line("push", "%s", text)
	}
	if s.Captures > 0 {
		line("captures", "%d under way", s.Captures)
	}
	w.Flush()
}

func newAgentServices() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use:   "services",
		Short: "Which services use the CPUs",
		Long: `List the services that were sampled in the last minutes, most CPU first, and how
each got its name: by a rule of the agent's file, else from its systemd unit, its
container, its jar or main class, or its program.`,
		Example: "  candid agent services\n  candid agent services --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			s, err := c.Services(cmd.Context())
			if err != nil {
				return failed(err)
			}
			out := cmd.OutOrStdout()
			if f.json {
				return printJSON(out, s)
			}
			if len(s.Services) == 0 {
				fmt.Fprintln(out, "nothing was stored so far: ask again in half a minute")
				return nil
			}
			w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "CPUs\tservice\tby\tprocesses\tsamples")
			for _, u := range s.Services {
				fmt.Fprintf(w, "%.3f\t%s\t%s\t%d\t%d\n", u.CPUs, report.Clean(u.Service), u.How, u.Processes, u.Samples)
			}
			w.Flush()
			fmt.Fprintf(out, "from %s to %s\n", s.From.Format(time.TimeOnly), s.To.Format(time.TimeOnly))
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func newAgentCapture() *cobra.Command {
	var f askFlags
	r := agent.CaptureRequest{}
	cmd := &cobra.Command{
		Use:   "capture",
		Short: "Record one service in detail, through the running agent",
		Long: `Ask the running agent for a recording of all processes of one service, at a
higher rate. It is stored beside the history, as a .jfr.zst that every candid
command reads. The agent's file bounds rate, duration and how many run at once
(capture:). Ctrl-C ends it early; what was recorded is kept.`,
		Example: `  candid agent capture --service shop -d 30s -F 999
  candid agent capture --service shop -d 10s -e wall`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			if r.Service == "" {
				return usage("name the service: --service NAME; candid agent services lists them")
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			res, err := c.Capture(ctx, r)
			if err != nil && ctx.Err() != nil {
				return failed(errors.New("ended early: what was captured is in the store's captures folder"))
			}
			if err != nil {
				return failed(err)
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), res)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %d processes of %s\n", res.File, config.Bytes(res.Bytes), res.Processes, res.Service)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&r.Service, "service", "", "`NAME` of the service")
	r.Duration = 30 * time.Second
	fl.VarP(seconds{&r.Duration}, "duration", "d", "how long")
	fl.Float64VarP(&r.Rate, "freq", "F", 99, "samples per second of CPU time")
	fl.StringVarP(&r.Event, "event", "e", "cpu", "cpu, wall or off-cpu")
	f.add(cmd)
	return cmd
}

// notifyReady tells systemd that the agent samples (sd_notify(3)).
func notifyReady() {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	if c, err := net.Dial("unixgram", path); err == nil {
		_, _ = c.Write([]byte("READY=1"))
		_ = c.Close()
	}
}
