package profile

import "github.com/candid-profiler/candid/internal/walk"

// BeforeSkid returns the node to which the time of a sample that ended in node belongs: the
// innermost one on its path to the root whose frame is not marked with walk.Skid. It is node
// itself, except for samples that a timer's interrupt delivered late. For a stack of nothing else
// it is RootNode.
func (p *Profile) BeforeSkid(node uint32) uint32 {
	for node != RootNode && p.Frames[p.Nodes[node].Frame].Flags&walk.Skid != 0 {
		node = p.Nodes[node].Parent
	}
	return node
}

// ShowSkid makes the profile's frames with walk.Skid ordinary ones, so that everything derived from
// it shows where samples came late, and not whose time it was. Equal frames may then exist twice.
func (p *Profile) ShowSkid() {
	for i := range p.Frames {
		p.Frames[i].Flags &^= walk.Skid
	}
}
