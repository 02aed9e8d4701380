// Package confine takes from candid's own process what a command does not need, so that a mistake in
// what reads hostile files gives whoever wrote them little.
package confine
