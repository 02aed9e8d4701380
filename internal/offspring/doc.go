// Package offspring starts processes for tests that end with the test: also where
// it is killed, runs out of time or panics, when nothing that it has deferred runs
// any more. It is support for tests.
package offspring
