// Package pprof writes and reads profiles in the format of go tool pprof: a gzipped protocol
// buffer, https://github.com/google/pprof/blob/main/proto/profile.proto.
//
// It keeps everything but the time of single samples. A physical frame and what was inlined into it
// are one Location with several lines; how certain a stack is, its thread and the thread's state
// are labels of the sample; a frame's kind and provenance are in the name of its Mapping; the rest
// is in comments, and in unreferenced strings, that begin with "candid: ".
//
// It writes sample by sample and holds no second copy of the profile. (The library of go tool pprof
// holds an object for each sample, location and label; the tests read the files with it.)
package pprof
