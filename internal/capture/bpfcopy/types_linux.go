package bpfcopy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"github.com/candid-profiler/candid/internal/kerneltypes"
)

// kernelTypes are the types of the kernel that the programs of one object use. The library parses
// everything that the kernel describes, which is most of the time that loading programs takes;
// these are just the kernel's types that have the same names as the object's.
type kernelTypes struct {
	fields *btf.Spec // structs with the members that the object knows
	ids    map[kerneltypes.Wanted][]kerneltypes.ID
}

// errNoFunction says that the kernel lacks a function that a program calls.
var errNoFunction = errors.New("the kernel has no such function")

// id returns the kernel's BTF ID of a type or function.
func (k *kernelTypes) id(kind kerneltypes.Kind, name string) (uint32, error) {
	ids := k.ids[kerneltypes.Wanted{Kind: kind, Name: name}]
	switch len(ids) {
	case 0:
		return 0, fmt.Errorf("%w: %s", errNoFunction, name)
	case 1:
		return uint32(ids[0]), nil
	}
	return 0, fmt.Errorf("the kernel has more than one %s", name)
}

// readKernelTypes finds the types that the programs of an object use.
func readKernelTypes(spec *ebpf.CollectionSpec) (*kernelTypes, error) {
	raw, free, err := kerneltypes.Read()
	if err != nil {
		return nil, err
	}
	defer free()
	var wanted []kerneltypes.Wanted
	local := map[kerneltypes.Wanted]btf.Type{}
	for t, err := range spec.Types.All() {
		if err != nil {
			return nil, fmt.Errorf("read the types of the BPF programs: %w", err)
		}
		w := kerneltypes.Wanted{Name: t.TypeName()}
		switch t.(type) {
		case *btf.Struct:
			w.Kind = kerneltypes.Struct
		case *btf.Union:
			w.Kind = kerneltypes.Union
		case *btf.Typedef:
			w.Kind = kerneltypes.Typedef
		default:
			continue
		}
		if len(w.Name) > 2 && local[w] == nil {
			local[w] = t
			wanted = append(wanted, w)
		}
	}
	for _, p := range spec.Programs {
		if kind, name := attachType(p); name != "" {
			wanted = append(wanted, kerneltypes.Wanted{Kind: kind, Name: name})
		}
		for i := range p.Instructions {
			if ins := &p.Instructions[i]; ins.IsKfuncCall() {
				wanted = append(wanted, kerneltypes.Wanted{Kind: kerneltypes.Func, Name: ins.Reference()})
			}
		}
	}
	set, found, err := kerneltypes.Find(raw, wanted)
	if err != nil {
		return nil, err
	}
	var types []btf.Type
	for w, t := range local {
		for _, id := range found[w] {
			t, err := trim(set, id, w, t)
			if err != nil {
				return nil, err
			}
			types = append(types, t)
		}
	}
	slices.SortStableFunc(types, func(a, b btf.Type) int { return cmp.Compare(a.TypeName(), b.TypeName()) })
	b, err := btf.NewBuilder(types, nil)
	if err != nil {
		return nil, fmt.Errorf("describe the kernel's types: %w", err)
	}
	k := &kernelTypes{ids: found}
	if k.fields, err = b.Spec(); err != nil {
		return nil, fmt.Errorf("describe the kernel's types: %w", err)
	}
	return k, nil
}

// attachType returns the kind and name of the kernel type by which a program says what it is
// attached to.
func attachType(p *ebpf.ProgramSpec) (kerneltypes.Kind, string) {
	if p.Type == ebpf.Tracing && p.AttachTo != "" {
		switch p.AttachType {
		case ebpf.AttachTraceRawTp:
			return kerneltypes.Typedef, "btf_trace_" + p.AttachTo
		case ebpf.AttachTraceIter:
			return kerneltypes.Func, "bpf_iter_" + p.AttachTo
		}
	}
	return 0, ""
}

// trim returns a type of the kernel, reduced to what like, the object's type of the same name, has.
func trim(set *kerneltypes.Set, id kerneltypes.ID, w kerneltypes.Wanted, like btf.Type) (btf.Type, error) {
	t, err := part(set, id, like, 0)
	if err == nil && w.Kind == kerneltypes.Typedef {
		return &btf.Typedef{Name: w.Name, Type: t}, nil
	}
	return t, err
}

// deepest is the greatest nesting depth of structs.
const deepest = 16

var plainInt = &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}

// part does the same for what is inside a struct. The target of a pointer is left out: following a
// pointer is another relocation.
func part(set *kerneltypes.Set, id kerneltypes.ID, like btf.Type, depth int) (btf.Type, error) {
	if depth > deepest {
		return nil, errors.New("the kernel's types lie too deep in each other")
	}
	_, t, err := set.Plain(id)
	if err != nil {
		return nil, err
	}
	like = plain(like)
	switch t.Kind {
	case kerneltypes.Void:
		return &btf.Void{}, nil
	case kerneltypes.Int:
		return &btf.Int{Name: t.Name, Size: t.Size, Encoding: btf.IntEncoding(t.Encoding())}, nil
	case kerneltypes.Float:
		return &btf.Float{Name: t.Name, Size: t.Size}, nil
	case kerneltypes.Enum, kerneltypes.Enum64:
		return &btf.Enum{Name: t.Name, Size: t.Size}, nil
	case kerneltypes.Ptr:
		return &btf.Pointer{Target: &btf.Void{}}, nil
	case kerneltypes.Array:
		of, n := t.Element()
		var likeOf btf.Type
		if a, ok := like.(*btf.Array); ok {
			likeOf = a.Type
		}
		element, err := part(set, of, likeOf, depth+1)
		if err != nil {
			return nil, err
		}
		return &btf.Array{Index: plainInt, Type: element, Nelems: n}, nil
	case kerneltypes.Struct, kerneltypes.Union:
		members, err := membersLike(set, t, like, depth)
		if err != nil {
			return nil, err
		}
		if t.Kind == kerneltypes.Union {
			return &btf.Union{Name: t.Name, Size: t.Size, Members: members}, nil
		}
		return &btf.Struct{Name: t.Name, Size: t.Size, Members: members}, nil
	}
	return nil, fmt.Errorf("a member of a kernel's type is of kind %d", t.Kind)
}

func plain(t btf.Type) btf.Type {
	if t == nil {
		return nil
	}
	return btf.UnderlyingType(t)
}

// membersLike returns the members of t that like has too.
func membersLike(set *kerneltypes.Set, t kerneltypes.Type, like btf.Type, depth int) ([]btf.Member, error) {
	var members []btf.Member
	for _, m := range set.Members(t) {
		inner := like
		if m.Name != "" {
			if inner = member(like, m.Name, depth); inner == nil {
				continue
			}
		} else if _, t, err := set.Plain(m.Type); err != nil || t.Kind != kerneltypes.Struct && t.Kind != kerneltypes.Union {
			continue
		}
		of, err := part(set, m.Type, inner, depth+1)
		if err != nil {
			return nil, err
		}
		if m.Name == "" && empty(of) {
			continue
		}
		members = append(members, btf.Member{Name: m.Name, Type: of, Offset: btf.Bits(m.Bit), BitfieldSize: btf.Bits(m.Bits)})
	}
	return members, nil
}

// member returns the type of a member, also of one in an unnamed struct; nil if there is none.
func member(t btf.Type, name string, depth int) btf.Type {
	for _, m := range membersOf(t) {
		if m.Name == name {
			return m.Type
		}
		if m.Name == "" && depth < deepest {
			if in := member(plain(m.Type), name, depth+1); in != nil {
				return in
			}
		}
	}
	return nil
}

func membersOf(t btf.Type) []btf.Member {
	switch t := t.(type) {
	case *btf.Struct:
		return t.Members
	case *btf.Union:
		return t.Members
	}
	return nil
}

func empty(t btf.Type) bool { return len(membersOf(t)) == 0 }
