// Package readytorun reads tables of .NET images that were compiled ahead of time, as they are in the
// image's file. Source: docs/design/coreclr/botr/readytorun-format.md in dotnet/runtime.
//
// Tables may be damaged or hostile: everything is bounded by their length.
package readytorun
