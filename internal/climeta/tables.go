package climeta

// column is one column of a table.
type column struct{ size uint8 }

// kind is what a column holds.
type kind uint16

// Kinds of columns. Values below 64 are indices of that table; coded indices (II.24.2.6) follow.
const (
	fixed2 kind = 64 + iota
	fixed4
	text
	guid
	blob
	typeDefOrRef
	hasConstant
	hasCustomAttribute
	hasFieldMarshal
	hasDeclSecurity
	memberRefParent
	hasSemantics
	methodDefOrRef
	memberForwarded
	implementation
	customAttributeType
	resolutionScope
	typeOrMethodDef
	hasCustomDebugInformation
)

// coded are the tables that a coded index may refer to, in the order of their tags, and the bits of
// a tag (II.24.2.6; the last one: the specification of portable PDBs).
var coded = map[kind]struct {
	bits   uint8
	tables []uint8
}{
	typeDefOrRef:              {2, []uint8{0x02, 0x01, 0x1b}},
	hasConstant:               {2, []uint8{0x04, 0x08, 0x17}},
	hasCustomAttribute:        {5, []uint8{0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b}},
	hasFieldMarshal:           {1, []uint8{0x04, 0x08}},
	hasDeclSecurity:           {2, []uint8{0x02, 0x06, 0x20}},
	memberRefParent:           {3, []uint8{0x02, 0x01, 0x1a, 0x06, 0x1b}},
	hasSemantics:              {1, []uint8{0x14, 0x17}},
	methodDefOrRef:            {1, []uint8{0x06, 0x0a}},
	memberForwarded:           {1, []uint8{0x04, 0x06}},
	implementation:            {2, []uint8{0x26, 0x23, 0x27}},
	customAttributeType:       {3, []uint8{0x06, 0x0a}},
	resolutionScope:           {2, []uint8{0x00, 0x1a, 0x23, 0x01}},
	typeOrMethodDef:           {1, []uint8{0x02, 0x06}},
	hasCustomDebugInformation: {5, []uint8{0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b, 0x30, 0x32, 0x33, 0x34, 0x35}},
}

// tables are the columns of every table (II.22; from 0x30 on: portable PDBs). In edited metadata
// the lists of fields, methods and so on are indices of the tables of pointers before them.
var tables = [maxTables][]kind{
	0x00: {fixed2, text, guid, guid, guid},
	0x01: {resolutionScope, text, text},
	0x02: {fixed4, text, text, typeDefOrRef, 0x04, 0x06},
	0x03: {0x04},
	0x04: {fixed2, text, blob},
	0x05: {0x06},
	0x06: {fixed4, fixed2, fixed2, text, blob, 0x08},
	0x07: {0x08},
	0x08: {fixed2, fixed2, text},
	0x09: {0x02, typeDefOrRef},
	0x0a: {memberRefParent, text, blob},
	0x0b: {fixed2, hasConstant, blob},
	0x0c: {hasCustomAttribute, customAttributeType, blob},
	0x0d: {hasFieldMarshal, blob},
	0x0e: {fixed2, hasDeclSecurity, blob},
	0x0f: {fixed2, fixed4, 0x02},
	0x10: {fixed4, 0x04},
	0x11: {blob},
	0x12: {0x02, 0x14},
	0x13: {0x14},
	0x14: {fixed2, text, typeDefOrRef},
	0x15: {0x02, 0x17},
	0x16: {0x17},
	0x17: {fixed2, text, blob},
	0x18: {fixed2, 0x06, hasSemantics},
	0x19: {0x02, methodDefOrRef, methodDefOrRef},
	0x1a: {text},
	0x1b: {blob},
	0x1c: {fixed2, memberForwarded, text, 0x1a},
	0x1d: {fixed4, 0x04},
	0x1e: {fixed4, fixed4},
	0x1f: {fixed4},
	0x20: {fixed4, fixed2, fixed2, fixed2, fixed2, fixed4, blob, text, text},
	0x21: {fixed4},
	0x22: {fixed4, fixed4, fixed4},
	0x23: {fixed2, fixed2, fixed2, fixed2, fixed4, blob, text, text, blob},
	0x24: {fixed4, 0x23},
	0x25: {fixed4, fixed4, fixed4, 0x23},
	0x26: {fixed4, text, blob},
	0x27: {fixed4, fixed4, text, text, implementation},
	0x28: {fixed4, fixed4, text, implementation},
	0x29: {0x02, 0x02},
	0x2a: {fixed2, fixed2, typeOrMethodDef, text},
	0x2b: {methodDefOrRef, blob},
	0x2c: {0x2a, typeDefOrRef},
	0x30: {blob, guid, blob, guid},
	0x31: {0x30, blob},
	0x32: {0x06, 0x35, 0x33, 0x34, fixed4, fixed4},
	0x33: {fixed2, fixed2, text},
	0x34: {text, blob},
	0x35: {0x35, blob},
	0x36: {0x06, 0x06},
	0x37: {hasCustomDebugInformation, guid, blob},
}

// columnsOf returns the columns of a table, given the rows of all tables and the widths of heaps.
func columnsOf(table int, rows *[maxTables]uint32, wide byte) []column {
	var out []column
	for _, k := range tables[table] {
		out = append(out, column{widthOf(k, rows, wide)})
	}
	return out
}

func widthOf(k kind, rows *[maxTables]uint32, wide byte) uint8 {
	large := false
	switch k {
	case fixed2:
		return 2
	case fixed4:
		return 4
	case text:
		large = wide&1 != 0
	case guid:
		large = wide&2 != 0
	case blob:
		large = wide&4 != 0
	default:
		if c, ok := coded[k]; ok {
			for _, t := range c.tables {
				large = large || rows[t] >= 1<<(16-c.bits)
			}
		} else {
			large = rows[k] >= 1<<16
			// Lists go through tables of pointers, which have as many rows.
		}
	}
	if large {
		return 4
	}
	return 2
}

// decode splits a coded index into a table and a row; false if the tag is unknown.
func decode(k kind, v uint32) (table int, row uint32, ok bool) {
	c := coded[k]
	tag := v & (1<<c.bits - 1)
	if int(tag) >= len(c.tables) {
		return 0, 0, false
	}
	return int(c.tables[tag]), v >> c.bits, true
}
