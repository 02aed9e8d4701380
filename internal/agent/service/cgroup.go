package service

import (
	"regexp"
	"slices"
	"strings"
)

// place is what /proc/PID/cgroup says of a process.
type place struct {
	paths     []string // of its control groups, without repetitions, the most telling first
	unit      string   // systemd's service, without .service; "" if there is none
	container string   // the container's ID, "" outside of containers
	pod       string   // the pod's UID, "" outside of Kubernetes
}

// containerID matches the name of a container's control group: of Docker, containerd, CRI-O and
// Podman, with the drivers systemd (docker-ID.scope) and cgroupfs (ID alone).
var containerID = regexp.MustCompile(`^(?:(?:docker|cri-containerd|crio|libpod|nerdctl)-)?([0-9a-f]{64})(?:\.scope)?$`)

// podUID matches the name of a pod's control group: kubepods-burstable-podUID.slice with
// underscores, podUID with hyphens.
var podUID = regexp.MustCompile(`(?:^|-)pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?$`)

// parsePlace reads the content of a cgroup file (cgroups(7)). Whatever it contains, the result is a
// place.
func parsePlace(b string) *place {
	p := &place{}
	var unified, systemd, rest []string
	for line := range strings.Lines(b) {
		id, after, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, at, ok := strings.Cut(after, ":")
		if !ok || at == "" || at == "/" {
			continue
		}
		switch {
		case id == "0" && controllers == "":
			unified = append(unified, at)
		case controllers == "name=systemd":
			systemd = append(systemd, at)
		default:
			rest = append(rest, at)
		}
	}
	for _, at := range slices.Concat(unified, systemd, rest) {
		if !slices.Contains(p.paths, at) {
			p.paths = append(p.paths, at)
		}
	}
	for _, at := range p.paths {
		p.read(at)
	}
	return p
}

// read looks for a unit and a container in a path. What is innermost is what the process belongs to.
func (p *place) read(at string) {
	unit, container, pod := "", "", ""
	for part := range strings.SplitSeq(at, "/") {
		// containerd's own naming: kubepods-burstable-podUID.slice:cri-containerd:ID
		for sub := range strings.SplitSeq(part, ":") {
			if m := containerID.FindStringSubmatch(sub); m != nil {
				container, unit = m[1], ""
			}
			if m := podUID.FindStringSubmatch(sub); m != nil {
				pod = strings.ReplaceAll(m[1], "_", "-")
			}
		}
		// user@1000.service is everything that a user runs.
		if u, ok := strings.CutSuffix(part, ".service"); ok && !strings.HasPrefix(u, "user@") {
			unit = u
		}
	}
	if p.unit == "" && p.container == "" {
		p.unit = unit
	}
	if p.container == "" {
		p.container, p.pod = container, pod
	}
}
