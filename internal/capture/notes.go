package capture

// Noter is an Engine that has more to report about a recording than Stats.
type Noter interface {
	// Notes returns what readers of the recording should know, one line each. It is called after
	// Run.
	Notes() []string
}
