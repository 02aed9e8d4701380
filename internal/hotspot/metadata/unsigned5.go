package metadata

// Unsigned5 decodes the VM's variable-length numbers (docs/hotspot.md, "Compressed numbers";
// OpenJDK 17 share/code/compressedStream.hpp, 21 share/utilities/unsigned5.hpp). Since JDK 20 no
// byte is 0 and each stands for one less than its value.
//
// It is a cursor over bytes of the target: running off the end sets Bad and yields zeros from then
// on.
type Unsigned5 struct {
	Data []byte
	Pos  int    // of the next byte
	Bias uint32 // 1 where zero bytes are excluded, else 0
	Bad  bool   // the numbers are not such
}

// Unsigned5Bias returns the bias for a major version of the JDK.
func Unsigned5Bias(major int) uint32 {
	if major >= 20 {
		return 1
	}
	return 0
}

// Next decodes a number. A byte below 192 ends it, the fifth always does.
func (u *Unsigned5) Next() uint32 {
	var sum uint32
	for shift := uint(0); shift < 30; shift += 6 {
		if u.Pos < 0 || u.Pos >= len(u.Data) {
			u.Bad = true
			return 0
		}
		b := u.Data[u.Pos]
		u.Pos++
		v := uint32(b) - u.Bias
		if b == 0 && u.Bias != 0 {
			u.Bad = true // the end marker inside a number
			return 0
		}
		sum += v << shift
		if b < 192 {
			break
		}
	}
	return sum
}

// Signed decodes a zig-zag number.
func (u *Unsigned5) Signed() int32 {
	v := u.Next()
	return int32(v>>1) ^ -int32(v&1)
}
