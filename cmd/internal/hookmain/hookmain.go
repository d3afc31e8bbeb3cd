// Package hookmain runs a hook before the packages of the program are initialised that a hook
// does not need. Of the packages whose imports are initialised, Go takes the one whose path sorts
// first; this one waits for a few of the standard library alone. Initialising the whole program
// takes most of the time of a hook, and an agent waits for two hooks at each call. An init function
// is otherwise not used in this program: nothing else runs before the packages that main imports
// are initialised.
package hookmain

import (
	"os"

	"anamnesis/orchestrator/beside/client"
)

func init() { client.Main(os.Args) }
