package op

// ModeSet says what the agent may do from now on, as the user chose it.
type ModeSet struct {
	Plan     bool   `json:"plan,omitempty"`     // it reads and makes a plan: no call runs that can change something
	Approval string `json:"approval,omitempty"` // the approval mode; empty: as before
	Notice   string `json:"notice,omitempty"`   // to the model; empty if Plan is as before
}
