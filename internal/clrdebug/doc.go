// Package clrdebug decodes what CoreCLR's compiler records of the code that it makes: which code is of
// which instruction, and which methods were inlined where (src/coreclr/vm/debuginfostore.cpp,
// inc/nibblestream.h). It comes from a process that may be hostile.
package clrdebug
