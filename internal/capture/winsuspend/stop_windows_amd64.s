#include "textflag.h"

// Offsets in request, and of registers in CONTEXT (winnt.h).
#define SUSPEND 0
#define CONTEXT 40
#define READ    64
#define PROCESS 72
#define BUFFER  80
#define ROOM    88
#define GOT     96
#define RESUME  104
#define STATE   144
#define STACKS  152
#define NSTACKS 160
#define ADDR    168
#define TOP     176
#define BEGUN   184
#define ENDED   192
#define SUSPENDED 200
#define CONTEXTED 204
#define COPIED  208
#define RESUMED 212
#define REGISTERS 216
#define STOP    224
#define FOUND   232

// Phases of a stop, as package guard has them.
#define SUSPENDING 1
#define SUSPENDED_ 2
#define RESUMING   3

#define CONTEXT_RSP 0x98

// stopThread has the calling convention of Windows x64: RCX is the address of a request. It runs on
// the system's stack, as a system call of Go's does.
TEXT ·stopThread(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BX
	PUSHQ SI
	PUSHQ R12
	SUBQ  $0x40, SP
	MOVQ  CX, BX
	MOVQ  STATE(BX), SI
	MOVQ  STOP(BX), R12
	RDTSC
	SHLQ  $32, DX
	ORQ   DX, AX
	MOVQ  AX, BEGUN(BX)
	LEAQ  SUSPENDING(R12), AX
	MOVQ  AX, (SI)

	MOVQ  $0, 0x20(SP)
	MOVQ  $0, 0x28(SP)
	MOVQ  (SUSPEND+8)(BX), CX
	MOVQ  (SUSPEND+16)(BX), DX
	MOVQ  (SUSPEND+24)(BX), R8
	MOVQ  (SUSPEND+32)(BX), R9
	MOVQ  SUSPEND(BX), AX
	CALL  AX
	MOVL  AX, SUSPENDED(BX)
	TESTL AX, AX
	JS    failed
	LEAQ  SUSPENDING(R12), AX
	LEAQ  SUSPENDED_(R12), DX
	LOCK
	CMPXCHGQ DX, (SI)
	JNE   taken

	MOVQ  (CONTEXT+8)(BX), CX
	MOVQ  (CONTEXT+16)(BX), DX
	MOVQ  CONTEXT(BX), AX
	CALL  AX
	MOVL  AX, CONTEXTED(BX)
	TESTL AX, AX
	JS    resume

	MOVQ  REGISTERS(BX), DX
	MOVQ  CONTEXT_RSP(DX), DX // the thread's stack pointer
	MOVQ  DX, ADDR(BX)
	MOVQ  STACKS(BX), CX
	MOVQ  NSTACKS(BX), R8
find:
	TESTQ R8, R8
	JZ    resume
	DECQ  R8
	MOVQ  (CX), R9            // its limit
	MOVQ  8(CX), R10          // its base, above it
	ADDQ  $16, CX
	CMPQ  DX, R9
	JCS   find
	CMPQ  DX, R10
	JCC   find
	MOVQ  R10, TOP(BX)
	SUBQ  DX, R10
	MOVQ  ROOM(BX), R9
	CMPQ  R10, R9
	JLS   fits
	MOVQ  R9, R10
fits:
	MOVQ  R10, R9             // bytes
	MOVQ  BUFFER(BX), R8
	MOVQ  PROCESS(BX), CX
	LEAQ  GOT(BX), AX
	MOVQ  AX, 0x20(SP)
	MOVQ  READ(BX), AX
	CALL  AX
	MOVL  AX, COPIED(BX)

resume:
	LEAQ  SUSPENDED_(R12), AX
	LEAQ  RESUMING(R12), DX
	LOCK
	CMPXCHGQ DX, (SI)
	JNE   taken
	MOVQ  $0, 0x20(SP)
	MOVQ  $0, 0x28(SP)
	MOVQ  (RESUME+8)(BX), CX
	MOVQ  (RESUME+16)(BX), DX
	MOVQ  (RESUME+24)(BX), R8
	MOVQ  (RESUME+32)(BX), R9
	MOVQ  RESUME(BX), AX
	CALL  AX
	MOVL  AX, RESUMED(BX)
	LEAQ  RESUMING(R12), AX
	LOCK
	CMPXCHGQ R12, (SI)
	JEQ   done
	MOVQ  $3, FOUND(BX)
	JMP   done
failed:
	LEAQ  SUSPENDING(R12), AX
	LOCK
	CMPXCHGQ R12, (SI)
	JEQ   done
	MOVQ  $1, FOUND(BX)
	JMP   done
taken:
	MOVQ  $2, FOUND(BX)
done:
	RDTSC
	SHLQ  $32, DX
	ORQ   DX, AX
	MOVQ  AX, ENDED(BX)
	XORL  AX, AX
	ADDQ  $0x40, SP
	POPQ  R12
	POPQ  SI
	POPQ  BX
	RET

// stopThreadAddr holds the address of stopThread itself, without the wrapper through which Go would
// call it.
DATA ·stopThreadAddr(SB)/8, $·stopThread(SB)
GLOBL ·stopThreadAddr(SB), RODATA, $8

// func cycles() uint64
TEXT ·cycles(SB), NOSPLIT, $0-8
	RDTSC
	SHLQ  $32, DX
	ORQ   DX, AX
	MOVQ  AX, ret+0(FP)
	RET
