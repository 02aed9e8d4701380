package hotspot

// unsigned5 decodes the VM's variable-length numbers (docs/hotspot.md, "Compressed numbers";
// OpenJDK 17 share/code/compressedStream.hpp, 21 share/utilities/unsigned5.hpp). Since JDK 20 no
// byte is 0 and each stands for one less than its value.
//
// It is a cursor over bytes of the target: running off the end sets bad and yields zeros from then
// on.
type unsigned5 struct {
	data []byte
	pos  int
	bias uint32 // 1 where zero bytes are excluded, else 0
	bad  bool
}

// unsigned5Bias returns the bias for a major version of the JDK.
func unsigned5Bias(major int) uint32 {
	if major >= 20 {
		return 1
	}
	return 0
}

// next decodes a number. A byte below 192 ends it, the fifth always does.
func (u *unsigned5) next() uint32 {
	var sum uint32
	for shift := uint(0); shift < 30; shift += 6 {
		if u.pos < 0 || u.pos >= len(u.data) {
			u.bad = true
			return 0
		}
		b := u.data[u.pos]
		u.pos++
		v := uint32(b) - u.bias
		if b == 0 && u.bias != 0 {
			u.bad = true // the end marker inside a number
			return 0
		}
		sum += v << shift
		if b < 192 {
			break
		}
	}
	return sum
}

// signed decodes a zig-zag number.
func (u *unsigned5) signed() int32 {
	v := u.next()
	return int32(v>>1) ^ -int32(v&1)
}
