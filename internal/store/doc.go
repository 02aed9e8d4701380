// Package store keeps profiles of days to weeks on disk and answers questions about a range of time:
// which services used the CPUs, and in which code.
//
// A folder holds a UTC day. Its files are lists of checksummed blocks that are only appended to:
// names (strings, functions, frames), nodes (one trie of all stacks of the day), processes
// (processes and threads) and samples (one block for each profile that was appended). What a block
// refers to is written before it, so a reader never needs a lock, and what a crash leaves unfinished
// is at the ends of files. docs/store.md describes the format.
//
// Nothing that is read from a store is trusted: blocks are bounded and checked, and what is damaged
// is skipped and reported.
package store

import "errors"

// ErrLocked is wrapped by the error of Create if another process writes to the store.
var ErrLocked = errors.New("another process writes to this store")

// ErrNoStore is wrapped by the error of Open if a directory is no store.
var ErrNoStore = errors.New("it is not a store of candid's")

// ErrNoSpace is wrapped by errors of Append if the disk has less free space than the store has to leave.
var ErrNoSpace = errors.New("no space left for the store")

// ErrNewer is wrapped by errors for stores of a newer version of candid.
var ErrNewer = errors.New("the store was written by a newer candid")
