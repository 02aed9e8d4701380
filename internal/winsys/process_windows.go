package winsys

import (
	"encoding/binary"
	"strings"
	"sync"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ReadMemory fills p from a process's memory; false unless all of it was read.
func ReadMemory(process windows.Handle, addr uint64, p []byte) bool {
	if len(p) == 0 {
		return true
	}
	var n uintptr
	err := windows.ReadProcessMemory(process, uintptr(addr), &p[0], uintptr(len(p)), &n)
	return err == nil && n == uintptr(len(p))
}

// Offsets in the 64-bit PEB and RTL_USER_PROCESS_PARAMETERS, which all Windows since 7 have there
// (winternl.h, phnt's ntpebteb.h and ntrtl.h).
const (
	pebParameters = 0x20

	paramDirectory = 0x38
	paramCommand   = 0x70
	paramEnd       = 0x80
)

// maxString bounds a command line in bytes; Windows' own limit is 65,534.
const maxString = 1 << 16

// pebOf returns the address of the process's PEB, 0 if it is not told.
func pebOf(process windows.Handle) uint64 {
	var info windows.PROCESS_BASIC_INFORMATION
	if windows.NtQueryInformationProcess(process, windows.ProcessBasicInformation, unsafe.Pointer(&info), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(info.PebBaseAddress)))
}

// Started returns what a process was started with, as its PEB has it: its command line, and its
// current directory now. Both are "" if they cannot be read.
func Started(process windows.Handle) (command, directory string) {
	var b [paramEnd]byte
	peb := pebOf(process)
	if peb == 0 || !ReadMemory(process, peb+pebParameters, b[:8]) {
		return "", ""
	}
	if !ReadMemory(process, binary.LittleEndian.Uint64(b[:]), b[:]) {
		return "", ""
	}
	return readString(process, b[paramCommand:]), readString(process, b[paramDirectory:])
}

// readString reads the text of a UNICODE_STRING.
func readString(process windows.Handle, s []byte) string {
	return stringOf(func(addr uint64, p []byte) bool { return ReadMemory(process, addr, p) }, s)
}

// stringOf reads the text of a UNICODE_STRING with read.
func stringOf(read func(addr uint64, p []byte) bool, s []byte) string {
	n, at := int(binary.LittleEndian.Uint16(s)), binary.LittleEndian.Uint64(s[8:])
	b := make([]byte, min(n, maxString)&^1)
	if !read(at, b) {
		return ""
	}
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(u))
}

// PlainPath removes what the kernel puts before a path, and turns the name of a device into its
// drive letter.
func PlainPath(path string) string {
	for _, p := range []string{`\??\UNC\`, `\\?\UNC\`, `\Device\Mup\`} {
		if rest, ok := cutFold(path, p); ok {
			return `\\` + rest
		}
	}
	for _, p := range []string{`\??\`, `\\?\`} {
		if rest, ok := cutFold(path, p); ok {
			return rest
		}
	}
	if !strings.HasPrefix(path, `\Device\`) {
		return path
	}
	for device, drive := range drives() {
		if rest, ok := cutFold(path, device); ok && strings.HasPrefix(rest, `\`) {
			return drive + rest
		}
	}
	return `\\?\GLOBALROOT` + path
}

func cutFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// drives returns the devices that have drive letters.
var drives = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	var buf [1024]uint16
	for c := 'A'; c <= 'Z'; c++ {
		drive := string(c) + ":"
		name, err := windows.UTF16PtrFromString(drive)
		if err != nil {
			continue
		}
		if n, err := windows.QueryDosDevice(name, &buf[0], uint32(len(buf))); err == nil && n > 0 {
			out[windows.UTF16ToString(buf[:])] = drive
		}
	}
	return out
})

// ImagePath returns the path of a process's program, "" if it is not told.
func ImagePath(process windows.Handle) string {
	buf := make([]uint16, 1<<15)
	n := uint32(len(buf))
	if windows.QueryFullProcessImageName(process, 0, &buf[0], &n) != nil {
		return ""
	}
	return windows.UTF16ToString(buf[:n])
}

var ntQueryVirtualMemory = ntdll.NewProc("NtQueryVirtualMemory")

// MappedFile returns the path of the file that is mapped at an address, "" if there is none.
func MappedFile(process windows.Handle, addr uint64) string {
	const mappedFilename = 2 // MemoryMappedFilenameInformation
	buf := make([]uint16, 1<<15+8)
	st, _, _ := ntQueryVirtualMemory.Call(uintptr(process), uintptr(addr), mappedFilename, uintptr(unsafe.Pointer(&buf[0])), uintptr(2*len(buf)), 0)
	if st != 0 {
		return ""
	}
	text := buf[8:] // behind the UNICODE_STRING
	return PlainPath(windows.UTF16ToString(text[:min(int(buf[0]/2), len(text))]))
}

// EnableDebug takes the privilege to open every process that is not protected; false if this user
// does not have it. It belongs to administrators who run an elevated program.
var EnableDebug = sync.OnceValue(func() bool {
	var token windows.Token
	if windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token) != nil {
		return false
	}
	defer token.Close()
	name, _ := windows.UTF16PtrFromString("SeDebugPrivilege")
	p := windows.Tokenprivileges{PrivilegeCount: 1, Privileges: [1]windows.LUIDAndAttributes{{Attributes: windows.SE_PRIVILEGE_ENABLED}}}
	if windows.LookupPrivilegeValue(nil, name, &p.Privileges[0].Luid) != nil {
		return false
	}
	// The call succeeds too if the user does not have the privilege: the last error tells.
	var ok uintptr
	var last error
	ok, _, last = adjustTokenPrivileges.Call(uintptr(token), 0, uintptr(unsafe.Pointer(&p)), 0, 0, 0)
	return ok != 0 && last == windows.ERROR_SUCCESS
})

var adjustTokenPrivileges = windows.NewLazySystemDLL("advapi32.dll").NewProc("AdjustTokenPrivileges")

// Protection returns the PS_PROTECTION of a process, whose lowest three bits are 0 for one that is
// not protected (NtQueryInformationProcess, ProcessProtectionInformation, Windows 8.1).
func Protection(pid uint32) byte {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(h)
	var level byte
	const protectionInformation = 61
	if windows.NtQueryInformationProcess(h, protectionInformation, unsafe.Pointer(&level), 1, nil) != nil {
		return 0
	}
	return level
}

// Machines of IMAGE_FILE_MACHINE_*.
const (
	MachineI386  = 0x14c
	MachineARM   = 0x1c4
	MachineAMD64 = 0x8664
	MachineARM64 = 0xaa64
)

// Machine returns the processor that a process's code is for, 0 if it is not told.
func Machine(process windows.Handle) uint16 {
	var machine, native uint16
	if isWow64Process2.Find() == nil {
		if windows.IsWow64Process2(process, &machine, &native) == nil {
			if machine != 0 {
				return machine
			}
			return native
		}
	}
	var wow bool
	if windows.IsWow64Process(process, &wow) == nil && wow {
		return MachineI386
	}
	return 0
}

var isWow64Process2 = kernel32.NewProc("IsWow64Process2")

// Owner returns the user that a process runs as, DOMAIN\name or the id as text; "" if it is not
// told.
func Owner(process windows.Handle) string {
	var token windows.Token
	if windows.OpenProcessToken(process, windows.TOKEN_QUERY, &token) != nil {
		return ""
	}
	defer token.Close()
	u, err := token.GetTokenUser()
	if err != nil {
		return ""
	}
	id := u.User.Sid.String()
	owners.Lock()
	defer owners.Unlock()
	if name, ok := owners.of[id]; ok {
		return name
	}
	name, domain, _, err := u.User.Sid.LookupAccount("")
	switch {
	case err != nil:
		name = id
	case domain != "":
		name = domain + `\` + name
	}
	if owners.of == nil || len(owners.of) > 1<<12 {
		owners.of = map[string]string{}
	}
	owners.of[id] = name
	return name
}

// owners are the names found: finding one may ask a server.
var owners struct {
	sync.Mutex
	of map[string]string
}
