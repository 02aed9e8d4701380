package otlp

// The field numbers of opentelemetry/proto/profiles/v1development/profiles.proto,
// as of v1.11.0 of opentelemetry-proto, and of the messages of common.proto and
// resource.proto that it uses.
// https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/profiles/v1development/profiles.proto
const (
	dataResourceProfiles = 1
	dataDictionary       = 2

	dictMapping   = 1
	dictLocation  = 2
	dictFunction  = 3
	dictLink      = 4
	dictString    = 5
	dictAttribute = 6
	dictStack     = 7

	resourceProfilesResource = 1
	resourceProfilesScope    = 2
	resourceAttributes       = 1
	scopeProfilesScope       = 1
	scopeProfilesProfiles    = 2
	scopeName                = 1
	scopeVersion             = 2

	profileSampleType = 1
	profileSamples    = 2
	profileTime       = 3
	profileDuration   = 4
	profilePeriodType = 5
	profilePeriod     = 6
	profileAttributes = 11

	valueTypeType = 1
	valueTypeUnit = 2

	sampleStack      = 1
	sampleAttributes = 2
	sampleValues     = 4
	sampleTimestamps = 5

	stackLocations = 1

	locationMapping    = 1
	locationAddress    = 2
	locationLines      = 3
	locationAttributes = 4

	lineFunction = 1
	lineLine     = 2

	functionName       = 1
	functionSystemName = 2
	functionFilename   = 3

	mappingFilename = 4

	keyValueKey   = 1
	keyValueValue = 2

	anyString = 1
	anyInt    = 3
)

// Attributes, by their names in OpenTelemetry's semantic conventions if there are any.
const (
	attrHost       = "host.name"
	attrService    = "service.name"
	attrPID        = "process.pid"
	attrCommand    = "process.command_line"
	attrRuntime    = "process.runtime.description"
	attrThread     = "thread.name"
	attrTID        = "thread.id"
	attrFrameType  = "profile.frame.type"
	attrFrameKind  = "candid.frame.kind"
	attrProvenance = "candid.frame.provenance"
	attrThreadKind = "candid.thread.kind"
	attrState      = "candid.thread.state"
	attrSyscall    = "candid.syscall"
	attrStack      = "candid.stack"
	attrSkid       = "candid.skid"
	attrLost       = "candid.lost"
)
