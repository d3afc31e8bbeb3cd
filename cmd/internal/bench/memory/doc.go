// Package memory measures what a memory is worth to an agent that goes back: the same
// simulated agent repairs the same simulated projects, and only the management of its context
// differs between the arms.
//
// World B is a real directory whose repair is a sequence of decisions. A
// decision's wrong options are dead ends that show only after some steps (5 to
// 30 in deep worlds, 1 to 3 in flat ones); one kind of them, the garden path,
// seems right and makes every option of the next decision fail, so that what
// was falsified there is right again elsewhere. Some commands reach outside
// the directory and are not undone by going back. See [Params] for every number.
//
// The agent knows nothing but the messages it is sent: it parses tool
// results, blocks and notices, and recalls each statement with a probability
// that falls with its distance and the length of the context ([Recall]). How
// often it follows what it recalls is a parameter.
//
// Every arm runs on the real orchestrator: a real stream, real snapshots, real
// jumps, real projection. The arms without the pass see that projection
// through a view that does to it what their published originals do ([Arms]).
// Three things are simulated: the model, the pass's writer (in the arms named
// so), and the shell, which in the fast path runs the project's commands
// inside this process; [Options.Complete] runs them through the real shell tool.
//
// The figures are claims about the mechanism, not about language models.
package memory
