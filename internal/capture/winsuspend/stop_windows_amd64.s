#include "go_asm.h"
#include "textflag.h"

// Offsets in request.
#define SUSPEND request_suspend
#define CONTEXT request_context
#define READ    request_read
#define PROCESS request_process
#define BUFFER  request_buffer
#define ROOM    request_room
#define GOT     request_got
#define RESUME  request_resume
#define STATE   request_state
#define STACKS  request_stacks
#define NSTACKS request_nstacks
#define ADDR    request_addr
#define TOP     request_top
#define BEGUN   request_begun
#define ENDED   request_ended
#define SUSPENDED request_suspended
#define CONTEXTED request_contexted
#define COPIED  request_copied
#define RESUMED request_resumed
#define REGISTERS request_registers
#define STOP    request_stop
#define FOUND   request_found
#define OWNLOW  request_ownLow
#define OWNHIGH request_ownHigh
#define CURG    request_curg
#define M       request_m
#define G       request_g
#define GGOT    request_gGot
#define OTHER   request_other
#define OTHERBUFFER request_otherBuffer
#define OTHERROOM request_otherRoom
#define OTHERGOT request_otherGot

// Phases of a stop, as package guard has them.
#define SUSPENDING 1
#define SUSPENDED_ 2
#define RESUMING   3

// Register in CONTEXT (winnt.h).
#define CONTEXT_RSP 0x98

// Reads R9 bytes of the process from DX to R8; how many were read goes to the field got. AX is the status.
#define READMEMORY(got) \
	MOVQ PROCESS(BX), CX; \
	LEAQ got(BX), AX; \
	MOVQ AX, 0x20(SP); \
	MOVQ READ(BX), AX; \
	CALL AX

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
	READMEMORY(GOT)
	MOVL  AX, COPIED(BX)
	TESTL AX, AX
	JS    resume

	// On its own stack, if it runs Go code: the stack of the goroutine that it runs.
	MOVQ  ADDR(BX), DX
	CMPQ  DX, OWNLOW(BX)
	JCS   resume
	CMPQ  DX, OWNHIGH(BX)
	JCC   resume
	MOVQ  CURG(BX), DX
	LEAQ  G(BX), R8
	MOVQ  $8, R9
	READMEMORY(GGOT)
	TESTL AX, AX
	JS    resume
	MOVQ  G(BX), DX
	TESTQ DX, DX
	JZ    resume
	LEAQ  G(BX), R8
	MOVQ  $const_goBytes, R9
	READMEMORY(GGOT)
	TESTL AX, AX
	JS    resume
	MOVQ  (G+const_goM)(BX), R9
	CMPQ  R9, M(BX)
	JNE   resume
	MOVQ  (G+const_goSP)(BX), DX
	SUBQ  $8, DX
	MOVQ  (G+const_goHigh)(BX), R10
	CMPQ  DX, (G+const_goLow)(BX)
	JCS   resume
	CMPQ  DX, R10
	JCC   resume
	MOVQ  DX, OTHER(BX)
	SUBQ  DX, R10
	MOVQ  OTHERROOM(BX), R9
	CMPQ  R10, R9
	JLS   part
	MOVQ  R9, R10
part:
	MOVQ  R10, R9
	MOVQ  OTHERBUFFER(BX), R8
	READMEMORY(OTHERGOT)
	TESTL AX, AX
	JNS   resume
	MOVQ  $0, OTHERGOT(BX)

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
