// Package nativeimage walks and names the stacks of Java programs that GraalVM compiled ahead of
// time ("native images"), from outside.
//
// Such a program has no unwind tables, no frame pointers and usually no symbols, but it carries the
// tables with which it walks its own stacks and prints its own stack traces. They hang on one object
// of the image heap, ImageCodeInfo, which package nativeimage recognises by its shape and proves by
// decoding all of what it leads to (find.go): for each address at which a call returns the size of
// the frame (codeinfo.go), and the methods that are there with their lines, inlined ones too
// (frameinfo.go).
//
// Layouts are those of the public sources of SubstrateVM in oracle/graal (CodeInfoDecoder,
// CodeInfoEncoder, FrameInfoDecoder, FrameInfoEncoder, ImageCodeInfo in
// substratevm/src/com.oracle.svm.core/src/com/oracle/svm/core/code), and of programs that were built
// with GraalVM 21.1 to 25.0.2.
package nativeimage
