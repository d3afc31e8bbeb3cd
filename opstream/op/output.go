package op

// OutputKept is a part of a command's output that the call's result omits, redacted like the
// result. The parts precede the result that names them; without a result, the program died
// before.
type OutputKept struct {
	Call string `json:"call"` // the call that ran the command
	Part int    `json:"part"` // from 1
	From int64  `json:"from"` // the byte of the output it begins with
	Text string `json:"text"`
}
