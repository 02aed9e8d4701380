// Package climeta reads the metadata of .NET assemblies: which types and methods there are, and
// what they are called. Source: ECMA-335, 6th edition, partition II, sections 22 to 25.
//
// Everything is read when it is asked for, a few small reads each, so that naming one method of an
// assembly with 100,000 costs no more than naming one of an assembly with 10. What is read may be
// damaged or hostile: all counts and nestings are bounded.
package climeta

import "errors"

// ErrFormat says that the metadata is damaged, or of a form that .NET does not write.
var ErrFormat = errors.New("metadata is damaged")

// Bounds of what is read from an assembly.
const (
	maxStreams   = 16
	maxName      = 1024    // bytes of one name; C# and the runtime limit them to 1,023
	maxNesting   = 64      // types in types
	maxRows      = 1 << 24 // of a table: tokens have 24 bits
	maxSignature = 1 << 12 // bytes of a method's signature
	maxBlob      = 1 << 16 // bytes of any other blob
	maxDepth     = 24      // types in types in a signature
	maxParams    = 256     // of a method
	maxTables    = 64      // kinds of table
	maxStream    = 1 << 31 // bytes
)
