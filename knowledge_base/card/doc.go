// Package card is the text form of one knowledge card: a markdown file with
// YAML front matter and labelled bullets, read with clear errors and written
// so that everything a user put around the known fields survives.
//
// The form is described at package knowledgebase.
package card
