// Package metadata reads what a HotSpot virtual machine knows of its classes, and the objects of its
// heap: references however they are packed or coloured, the fields of a class, strings, Symbols.
// All memory of the target is taken as hostile.
package metadata
