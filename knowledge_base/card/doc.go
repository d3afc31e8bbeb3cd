// Package card is the text form of one knowledge card: a markdown file with
// YAML front matter and labelled bullets, read with clear errors and written
// so that everything a user put around the known fields survives.
//
//	---
//	type: knowledge_card
//	topic: go test caches results
//	source_task: task_12
//	id: 4yq2m5pkd3c7xw6a
//	state: draft
//	created: 2026-01-31T10:00:00Z
//	scope:
//	  language: go
//	provenance:
//	  task: task_12
//	  jump_op: 48
//	  ranges: [12-47]
//	  model: extractor
//	  tainted: false
//	tags: [testing]
//	---
//
//	- **Issue**: a test that reads a file keeps passing after …
//	- **Solution**: run with -count=1
//	- **Constraint**: only for tests that …
//
// type, topic and source_task come first, in this order. There may be as many
// bullets as needed. Keys, comments and prose the program does not know
// survive its edits.
package card
