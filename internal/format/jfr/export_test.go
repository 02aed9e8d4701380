package jfr

// TornFiles is tornFiles for the tests from outside.
var TornFiles = tornFiles
