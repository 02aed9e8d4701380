package profile

import "github.com/candid-profiler/candid/internal/walk"

// BeforeSkid gives the node whose time a sample's is that ended in node: the innermost one on
// its way to the root whose frame is not marked with walk.Skid. That is node itself but for
// samples that a timer's interrupt delivered late. A stack of nothing else gives RootNode.
func (p *Profile) BeforeSkid(node uint32) uint32 {
	for node != RootNode && p.Frames[p.Nodes[node].Frame].Flags&walk.Skid != 0 {
		node = p.Nodes[node].Parent
	}
	return node
}

// ShowSkid makes the profile's frames with walk.Skid ordinary ones, so that whatever is made
// of it shows where samples came late, and not whose time it was. Equal frames may then be
// there twice.
func (p *Profile) ShowSkid() {
	for i := range p.Frames {
		p.Frames[i].Flags &^= walk.Skid
	}
}
