package state

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/opstream/op"
)

// Limits of what a search for cards includes of a failed call.
const (
	maxQueryCommand = 200 // bytes of its command
	maxQueryFiles   = 3   // files it read or wrote, by their last name
	maxQueryError   = 600 // bytes of its error
)

// Trouble describes the last failure in words that a card about it would use.
type Trouble struct {
	Error string `json:",omitempty"` // the most telling lines of the result, verbatim
	About string `json:",omitempty"` // the command that was run, or the tool, and the files it was about
}

// troubleOf derives it from a failed call.
func troubleOf(c *CallState, b *op.ToolReturned) Trouble {
	printed := failure.Output{Text: b.Stdout, Stderr: b.Stderr, Error: true}
	if strings.TrimSpace(b.Stdout+b.Stderr) == "" {
		printed.Text = b.Text
	}
	failed, _ := failure.Read(printed)
	var args struct{ Command, Path string }
	if json.Unmarshal([]byte(c.Args), &args) != nil {
		args.Command, args.Path = "", "" // another tool's arguments: its name is enough
	}
	about := []string{cmp.Or(args.Command[:min(len(args.Command), maxQueryCommand)], c.Name)}
	files := slices.Concat([]string{args.Path}, b.Reads, b.Writes)
	for _, path := range files[:min(len(files), maxQueryFiles+1)] {
		if name := filepath.Base(path); path != "" && !slices.Contains(about, name) {
			about = append(about, name)
		}
	}
	return Trouble{
		Error: cmp.Or(failed.Line[:min(len(failed.Line), maxQueryError)], b.Text[:min(len(b.Text), maxQueryError)]),
		About: strings.ToValidUTF8(strings.Join(about, " "), ""),
	}
}

// NoPrompt is the request of a session that began without one.
const NoPrompt = "(the session began without a prompt)"

// Recall is the search for cards.
type Recall struct {
	Done    bool    // cards were recalled for the present situation
	Why     string  // start | jump: why the next recall is due
	Trouble Trouble // the last call that failed
}

// Queries returns the queries for a search of the cards, the most specific first.
func (r *Recall) Queries(why, request string) (queries []string) {
	if why == "jump" && r.Trouble.Error != "" {
		queries = []string{r.Trouble.Error, r.Trouble.Error + "\n" + r.Trouble.About}
	}
	if request != NoPrompt {
		queries = append(queries, request)
	}
	return queries
}
