package capture

// Noter is an Engine that has more to say of a recording than Stats.
type Noter interface {
	// Notes is what people should know who look at the recording, a line each. It is called
	// after Run.
	Notes() []string
}
