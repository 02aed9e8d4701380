// Package jfr writes and reads recordings in the format of the JDK's Flight Recorder, version 2:
// the file that the JDK's jfr tool, JDK Mission Control, IntelliJ, async-profiler's converter and
// Pyroscope open.
//
// A file is a sequence of chunks. Each begins with a header of 68 bytes, describes its own types in
// a metadata event, and holds events and checkpoints: tables of constants that events refer to by
// number (HotSpot: share/jfr/recorder/repository/ jfrChunkWriter.cpp and jdk.jfr.internal.consumer
// in the JDK).
//
// A sample is one event. Readers that know nothing of candid find in it what they expect, thread,
// stack and state. These are followed by the fields that only candid reads: the weight, the stack
// as a node of candid's own trie, in which frames keep their address, kind and provenance, and
// everything else as one constant. So a file holds everything that a profile.Profile does, and
// reading it restores that.
//
// A Stream writes during recording: after each Flush the file is complete up to that point,
// whatever happens to candid later.
package jfr
