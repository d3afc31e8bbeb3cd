// Package consent stores what users approved by its content: rule files, programs of a
// project, and calls that run its scripts. It finds the programs that a command line names and
// hashes their files.
package consent
