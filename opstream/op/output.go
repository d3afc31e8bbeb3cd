package op

// OutputKept is a part of a command's output that the result of the call leaves
// out, redacted as what is shown. The parts of one output stand in the stream
// before the result that names them; where none does, the program died before.
type OutputKept struct {
	Call string `json:"call"` // the call that ran the command
	Part int    `json:"part"` // from 1
	From int64  `json:"from"` // the byte of the output it begins with
	Text string `json:"text"`
}

// Kind implements Body.
func (*OutputKept) Kind() Kind { return KindOutputKept }
