// Package knowledgebase keeps what tasks have learned: cards, one markdown
// file each, and finds the ones that matter for a new situation. The text
// form of a card is package card's.
//
// # On disk
//
// A card is <dir>/<yyyy-mm>/<slug>-<id>.md. The files are the truth and are
// meant to be read, edited and shared by people; every *.md file in a folder
// named yyyy-mm is taken for a card, everything else is left alone. What is
// under <dir>/.index is derived and may be deleted at any time, but for a
// change that is being written (change-*.json), which is carried to its end
// when the folder is opened after a crash. Directories are created 0700,
// files 0600.
//
// The folder is a git repository of its own (package history): each change by
// the program is one commit, and what people changed by hand becomes a commit
// of theirs before it. A store that lies in another repository has no history
// of its own; there <dir>/.replaced keeps the former text of drafts that a
// repeated pass wrote again.
//
// # Retrieval
//
// Package retrieval finds cards. This package decides which cards a task may see, and how a card's
// state changes its score.
package knowledgebase
