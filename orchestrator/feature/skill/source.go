package skill

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
)

// ToolName is the name of the tool that opens skills.
const ToolName = "Skill"

// Limits of texts.
const (
	maxListBytes     = 12_000 // of the names and descriptions, which every request has
	maxQuestionBytes = 20_000
	maxNamed         = 20 // in one line
)

// Source offers the tool Skill while there are skills. It is a tool.Source; Tools belongs to one
// goroutine.
type Source struct {
	Read  func() []Skill
	Trust *consent.Trust
	// Ask puts a question to the user; nil: there is no user.
	Ask func(ctx context.Context, question string) bool

	version uint64
	offered string          // the names and hashes
	said    map[string]bool // the news of the last time
	refused string          // what the user said no to
}

func (s *Source) Tools(ctx context.Context) (out tool.Offer) {
	now := make(map[string]bool)
	tell := func(format string, args ...any) {
		text := tool.Visible(fmt.Sprintf(format, args...))
		if now[text] = true; !s.said[text] {
			out.News = append(out.News, text)
		}
	}
	all := s.Read()
	for _, k := range all {
		if k.Err != nil {
			tell("%s is not used: %v.", k.Path, k.Err)
		} else if k.Warning != "" {
			tell("%s: %s.", k.Path, k.Warning)
		}
	}
	usable, waiting, err := Approved(s.Trust, all)
	if hashes := hashesOf(waiting); err == nil && len(waiting) > 0 && s.Ask != nil && s.refused != hashes {
		if s.Ask(ctx, Question(waiting)) {
			usable, waiting, err = append(usable, waiting...), nil, Approve(s.Trust, waiting)
		} else {
			s.refused = hashes // not asked again until a file changes
		}
	}
	if err != nil {
		tell("The project's skills are not used: %v.", err)
	} else if len(waiting) > 0 {
		tell("Not used until the user approves them as they are now ('skills approve'): the project's %s.",
			namesOf(waiting))
	}
	skills := slices.DeleteFunc(usable, func(k Skill) bool { return k.Command || k.userOnly })
	if hashes := hashesOf(skills); hashes != s.offered {
		s.version, s.offered = s.version+1, hashes
	}
	if out.Version = s.version; len(skills) > 0 {
		text, cut := list(skills)
		if cut > 0 {
			tell("%d skills have %d bytes in each request: %d are named with a part of their description, "+
				"or not at all.", len(skills), maxListBytes, cut)
		}
		out.Tools = []tool.Tool{opener{text, skills}}
	}
	s.said = now // a fault that was mended and returns is reported again
	return out
}

func hashesOf(skills []Skill) (all string) {
	for _, k := range skills {
		all += k.Name + " " + k.hash + "\n"
	}
	return all
}

// namesOf lists names, and says how many it omits.
func namesOf(skills []Skill) string {
	var names []string
	for _, k := range skills[:min(len(skills), maxNamed)] {
		names = append(names, k.Name)
	}
	if more := len(skills) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// Approved divides the skills without faults into those that may be used, and a project's whose
// present content no user has approved.
func Approved(trust *consent.Trust, all []Skill) (usable, waiting []Skill, err error) {
	approved, err := trust.List()
	for _, k := range all {
		a := k.approval()
		switch {
		case k.Err != nil:
		case k.Project == "", slices.ContainsFunc(approved, func(b consent.Approval) bool { return b.Covers(a) }):
			usable = append(usable, k)
		default:
			waiting = append(waiting, k)
		}
	}
	return usable, waiting, err
}

// Approve records that a user approved the present content of skills.
func Approve(trust *consent.Trust, skills []Skill) error {
	var all []consent.Approval
	for _, k := range skills {
		all = append(all, k.approval())
	}
	return trust.Approve(all...)
}

// Question asks whether skills may be used, which it shows.
func Question(skills []Skill) string {
	var sb strings.Builder
	for _, k := range skills {
		about := k.Description + "\n"
		if first, _, _ := strings.Cut(k.Body, "\n"); tool.Visible(strings.TrimLeft(first, "# ")) == k.Description {
			about = "" // the text begins with it
		}
		fmt.Fprintf(&sb, "--- %s\n%s%s\n", k.Path, about, k.Body)
	}
	text := sb.String()
	if len(text) > maxQuestionBytes {
		text = fmt.Sprintf("%s\n[%d bytes are left out. All of them: %s]\n", quote.CutBytes(text, maxQuestionBytes),
			len(text)-maxQuestionBytes, namesOf(skills))
	}
	return "The project brings texts that tell the agent what to do:\n" + tool.Visible(text) +
		"Use them, as they and the files beside them are now?"
}

// list returns the list of skills that the model is shown, and how many of them it cuts.
func list(skills []Skill) (text string, cut int) {
	room, most := maxListBytes, maxListBytes
	for _, k := range skills {
		room -= len(k.Name) + len(k.Description) + len("- : \n")
	}
	if room < 0 { // not all fit whole: each may have the same share
		most = maxListBytes/len(skills) - 1
	}
	for i, k := range skills {
		line := fmt.Sprintf("- %s: %s", k.Name, k.Description)
		if len(line) > most {
			line = strings.TrimSuffix(quote.CutBytes(line, max(most-len("…"), len(k.Name)+2)), ":") + "…"
			cut++
		}
		if len(text)+len(line) >= maxListBytes {
			return text, cut + len(skills) - i - 1
		}
		text += line + "\n"
	}
	return text, cut
}

// opener is the tool Skill with the skills of one moment.
type opener struct {
	list   string
	skills []Skill
}

func (o opener) Spec() tool.Spec {
	return tool.Spec{
		Name: ToolName, ReadOnly: true, Repeats: true,
		Description: "Open a skill: instructions of the user or the project for a kind of work. Open it before such " +
			"work begins, then follow it. The skills:\n" + strings.TrimSpace(o.list),
		Schema: tool.Params(
			tool.Required("skill", tool.String("The skill's name.")),
			tool.Optional("args", tool.Text("Arguments, if the skill has any.")),
		),
	}
}

func (o opener) Call(ctx context.Context, _ *tool.Env, raw json.RawMessage) (tool.Result, error) {
	args, err := tool.Decode[struct{ Skill, Args string }](ctx, raw)
	if err != nil {
		return tool.Result{}, err
	}
	k, _ := Typed(o.skills, "/"+strings.TrimPrefix(args.Skill, "/"))
	if k == nil {
		return tool.Errorf("There is no skill %q. There are %s.", args.Skill, namesOf(o.skills)), nil
	}
	return tool.Textf("The skill %s, of %s:\n\n%s", k.Name, tool.Visible(k.Path),
		k.Expand(strings.TrimSpace(args.Args))), nil
}
