package suspend

// olderCalls are none: this architecture has newer calls only.
var olderCalls []int
