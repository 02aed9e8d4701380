package main

import "github.com/spf13/cobra"

// privilegesHint refers from the help of commands to newPrivileges.
const privilegesHint = `'candid help privileges' says how to run it without root, in Docker and in Kubernetes.`

// newPrivileges returns a text to read, not a command: which privileges permit what. doctor says
// what this machine permits.
func newPrivileges() *cobra.Command {
	return &cobra.Command{
		Use:   "privileges",
		Short: "How to run candid without root, in Docker and in Kubernetes",
		Long: `Root profiles everything. Without root there is always a way, and candid takes the
best that is permitted; its first line says what was lost, and 'candid doctor' what
would bring it back, as commands.

An ordinary user profiles the processes that are theirs:
  kernel.perf_event_paranoid 1       all but the whole machine (-a)
  kernel.perf_event_paranoid 2       without the time spent in the kernel
  3 and above, a default container   CPU and wall time, threads stopped for microseconds
With kernel.yama.ptrace_scope 1 only programs that candid launches: candid record -- ...
off-cpu, probes and several events in one recording need BPF.

Four capabilities do what root does: CAP_PERFMON and CAP_BPF to sample, CAP_SYS_PTRACE
to read other users' processes, CAP_SYSLOG for the names of kernel functions. Who may
execute a file that has them can read the memory of any process.

In Docker candid may stay outside of the container, or run beside it. In Kubernetes it
runs in a container with the same capabilities, without 'privileged', in a pod with
shareProcessNamespace: true (beside the application) or hostPID: true (for all of a node):
  securityContext:
    runAsUser: 0
    allowPrivilegeEscalation: false
    capabilities: {drop: [ALL], add: [PERFMON, BPF, SYS_PTRACE, SYSLOG]}
Where a cluster admits none of that, put candid into the application's image and run it
with kubectl exec as the application's user. Whole manifests are in docs/kubernetes.yaml of
the sources, and docs/privileges.md says more.

Examples:
  sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog+ep ./candid
  sudo candid record -p $(docker inspect -f '{{.State.Pid}}' NAME) -d 30s
  docker run --rm -it --pid container:NAME --cap-add PERFMON --cap-add BPF \
    --cap-add SYS_PTRACE --cap-add SYSLOG -v "$PWD:/out" -w /out IMAGE candid record -p 1 -d 30s
  kubectl exec -it POD -c CONTAINER -- candid record -p 1 -d 30s -o /tmp/app.jfr`,
	}
}
