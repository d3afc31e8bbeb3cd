// Package counterparts measures how cards are found beside what one would take
// instead: bleve, SQLite FTS5 with its Porter stemmer, and chromem-go alone.
//
// It is a module of its own, so that who uses the program does not carry these
// libraries. It has tests and benchmarks only:
//
//	go test -run '^$' -bench . anamnesis/knowledge_base/counterparts
package counterparts
