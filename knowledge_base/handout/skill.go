package handout

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
)

// SkillName is the folder of the skill.
const SkillName = "project-lessons"

const description = "Lessons of this project: commands that failed here and what made them work. Read before you debug a failing build, test or command."

// Skill returns the files of the skill by their paths, which use slashes; none without
// cards. held is how many of the cards they hold.
func Skill(cards []*card.Card) (files map[string]string, held int) {
	const why = "written by anamnesis; edit the cards instead"
	topics := map[string][]*card.Card{}
	for _, c := range cards {
		t := topicOf(c)
		topics[t] = append(topics[t], c)
	}
	if len(topics) == 0 {
		return nil, 0
	}
	files = map[string]string{}
	var index strings.Builder
	index.WriteString("# Lessons of this project\n\nEach file has the lessons about one tool; each lesson names its card.\n\n")
	for _, t := range slices.Sorted(maps.Keys(topics)) {
		if strings.Count(index.String(), "\n")+7 > maxIndexLines {
			break
		}
		list := topics[t]
		held += len(list)
		var b strings.Builder
		fmt.Fprintf(&b, "# %s\n", t)
		var names []string
		for _, c := range list {
			fmt.Fprintf(&b, "\n## %s (%s)\n\n", plain(c.Topic), c.ID)
			for _, part := range []struct {
				name  string
				lines []string
			}{{"Issue", c.Issue}, {"Solution", c.Solution}, {"Constraint", c.Constraint}} {
				for _, l := range slices.DeleteFunc(slices.Clone(part.lines), card.IsRest) {
					fmt.Fprintf(&b, "- **%s**: %s\n", part.name, strings.Join(lines(l), "\n  "))
				}
			}
			names = append(names, plain(c.Topic))
		}
		files["references/"+t+".md"] = mark(b.String(), why)
		fmt.Fprintf(&index, "- [%s](references/%s.md): %s\n", t, t, clip(strings.Join(names, "; "), maxLineBytes))
	}
	files["SKILL.md"] = fmt.Sprintf("---\nname: %s\ndescription: %q\n---\n", SkillName, description) + mark(index.String(), why)
	return files, held
}

var nonWord = regexp.MustCompile(`[^a-z0-9]+`)

// command is the program that a card's issue says was run.
var command = regexp.MustCompile("^`([A-Za-z0-9_./-]+)")

// topicOf names the file that a card goes to: its tool, the program that failed, or
// its language.
func topicOf(c *card.Card) string {
	name := c.Scope.Tool
	if m := command.FindStringSubmatch(strings.Join(c.Issue, "\n")); name == "" && m != nil {
		name = m[1][strings.LastIndexByte(m[1], '/')+1:]
	}
	name = strings.Trim(nonWord.ReplaceAllString(strings.ToLower(cmp.Or(name, c.Scope.Language)), "-"), "-")
	return cmp.Or(name[:min(len(name), 40)], "general")
}

// Unchanged reports whether a file of the skill is as it was written.
func Unchanged(file string) bool {
	at := marked.FindStringIndex(file)
	return at != nil && at[1] == len(file) && unchanged(file[at[0]:])
}
