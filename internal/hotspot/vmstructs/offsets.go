package vmstructs

// Absent marks an offset that the VM does not publish.
const Absent = ^uint64(0)

// OffsetRow says which published field yields an offset in a T.
type OffsetRow[T any] struct {
	To      func(*T) *uint64
	Fields  []string // the first that is published counts
	Feature string   // what does not work without it; "" if some versions never have it
}

// Offsets looks up the rows. What does not work without those that are absent is noted.
func Offsets[T any](vm *VM, rows []OffsetRow[T]) (o T) {
	for _, r := range rows {
		f := vm.Field(r.Fields...)
		*r.To(&o) = Absent
		if f.OK {
			*r.To(&o) = f.Offset
		} else if r.Feature != "" {
			vm.Missing(r.Fields[0], r.Feature)
		}
	}
	return o
}
