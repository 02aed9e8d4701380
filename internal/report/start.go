package report

import (
	"path"
	"slices"
	"strings"

	"github.com/candid-profiler/candid/internal/profile"
	"github.com/candid-profiler/candid/internal/walk"
)

// leastStart is from how many frames on a thread's start is shown as one line.
const leastStart = 3

// starters are the functions between the kernel and the first function that somebody
// wrote: by the libraries that they are in, without the ends of their names.
var starters = map[string][]string{
	"libc":    libcStarters, // glibc 2.31 and later, musl
	"ld-musl": libcStarters,
	// Before glibc 2.34 threads had a library of their own.
	"libpthread": {"start_thread", "__clone", "clone"},
	// JDK 8 to 27: os_linux.cpp, thread.cpp and javaThread.cpp, javaCalls.cpp, jni.cpp, jvm.cpp.
	"libjvm": {
		"java_start", "thread_native_entry", "Thread::call_run", "JavaThread::run", "JavaThread::thread_main_inner", "thread_entry",
		"JavaCalls::call", "JavaCalls::call_virtual", "JavaCalls::call_static", "JavaCalls::call_helper", "os::os_exception_wrapper",
		"jni_CallStaticVoidMethod", "jni_CallStaticVoidMethodV", "jni_invoke_static",
	},
	// java.base's share/native/libjli/java.c and its parts for each system.
	"libjli": {"JavaMain", "invokeStaticMainWithArgs", "ThreadJavaMain", "CallJavaMainInNewThread", "CallJavaMain", "ContinueInNewThread", "ContinueInNewThread0", "JVMInit", "JLI_Launch"},
	"java":   {"main"},
}

var libcStarters = []string{
	"clone", "clone3", "__clone", "__clone3", "__clone_internal", "start_thread", "__start_thread", "start",
	"__libc_start_main", "__libc_start_main_impl", "__libc_start_main@@GLIBC_2.34", "__libc_start_call_main", "libc_start_main_stage2",
}

// starts says whether a function starts threads and programs, and whether it has
// a name that says so: what has none is taken by its library.
func starts(kind walk.Kind, name, module string) (yes, named bool) {
	switch {
	case kind == walk.KindStub:
		return strings.HasSuffix(name, "call_stub"), true
	case kind != walk.KindNative:
		return false, false
	case name == "_start" || name == "_start_c":
		return true, true
	}
	base := path.Base(module)
	for library, functions := range starters {
		rest, its := strings.CutPrefix(base, library)
		if !its || rest != "" && rest[0] != '.' && rest[0] != '-' {
			continue
		}
		if strings.HasPrefix(name, base+"+0x") {
			return true, false
		}
		for _, f := range functions {
			if bare, _, _ := strings.Cut(name, "("); bare == f {
				return true, true
			}
		}
	}
	return false, false
}

// StartsThreads says whether a function is between the kernel and the first function of a
// thread or program that somebody wrote. One without a name is not, here.
func StartsThreads(kind walk.Kind, name, module string) bool {
	yes, named := starts(kind, name, module)
	return yes && named
}

// starting says for each node of a tree whether it is of a thread's start, if all
// above it are, or in a tree of callers all below it. Without names what a VM's own
// threads do looks like their start: then what leads to Java code is.
func (tp *treePrinter) starting() []bool {
	yes := make([]bool, len(tp.t.Nodes))
	for i := len(yes) - 1; i > 0; i-- { // children come after their parents
		n := &tp.t.Nodes[i]
		f := tp.s.Func(n.Method)
		is, named := starts(n.Kind, f.Name, f.Module)
		any, all := false, true
		for _, c := range n.Children {
			any, all = any || yes[c], all && yes[c]
		}
		if tp.arrow == "" {
			yes[i] = is && (named || any)
		} else {
			yes[i] = is && all
		}
	}
	return yes
}

// foldStart makes one node of those at the root of a call tree that start threads; what
// they call is below it. The tree is a copy.
func (tp *treePrinter) foldStart() {
	yes := tp.starting()
	root := tp.t.Nodes[profile.RootNode]
	nodes := slices.Clone(tp.t.Nodes)
	var fold profile.TreeNode
	var first uint32
	var left []uint32
	count := 0
	todo := slices.Clone(root.Children)
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := &tp.t.Nodes[at]
		switch {
		case yes[at]:
			if n.Parent == profile.RootNode {
				fold.Total.Add(n.Total)
				first = at
			}
			count++
			fold.Self.Add(n.Self)
			todo = append(todo, n.Children...)
		case n.Parent == profile.RootNode:
			left = append(left, at)
		default:
			fold.Children = append(fold.Children, at)
		}
	}
	if count < leastStart {
		return
	}
	left = append(left, first)
	nodes[first] = fold
	nodes[profile.RootNode].Children = left
	tp.t = &profile.Tree{Nodes: nodes}
	tp.t.Order(left)
	tp.t.Order(fold.Children)
	tp.folds = map[uint32]int{first: count}
}

// foldEnds finds what in a tree of callers ends with nothing but a thread's start.
func (tp *treePrinter) foldEnds() {
	yes := tp.starting()
	sizes := make([]int, len(yes))
	tp.folds = map[uint32]int{}
	for i := len(yes) - 1; i > 0; i-- {
		n := &tp.t.Nodes[i]
		sizes[i]++
		if yes[i] {
			sizes[n.Parent] += sizes[i]
		}
		if yes[i] && !yes[n.Parent] && n.Parent != profile.RootNode && sizes[i] >= leastStart {
			tp.folds[uint32(i)] = sizes[i]
		}
	}
}

// fold makes one line each of the frames by which threads start.
func (tp *treePrinter) fold() {
	if tp.arrow == "" {
		tp.foldStart()
	} else {
		tp.foldEnds()
	}
}
