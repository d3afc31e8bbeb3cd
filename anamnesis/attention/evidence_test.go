package attention

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// benchNames are the evidence file's benchmarks as eas.yaml calls them.
func benchNames() map[string]string {
	return map[string]string{
		"ruler": "RULER", "nolima": "NoLiMa", "fiction_livebench": "FLB", "openai_mrcr_contextarena_snapshot_mid2025": "MRCR",
		"babilong_qa1_5": "BABILong", "chroma_niah_low_similarity": "Chroma-NIAH", "chroma_longmemeval": "Chroma-LongMemEval",
		"projectpeak_state_tracking": "ProjectPeak",
	}
}

// evidenceKey names one row of the evidence file: benchmark and model.
type evidenceKey struct{ bench, model string }

// readEvidence reads the published results, or skips, saying so.
func readEvidence(t *testing.T) map[evidenceKey]map[string]any {
	t.Helper()
	dir := cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "shared", "data"))
	data, err := os.ReadFile(filepath.Join(dir, "eas_evidence.yaml"))
	if err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the evidence: %v", err)
		}
		t.Skipf("SKIPPED: no evidence (%v); set ANAMNESIS_BENCH_DATA to the folder that holds eas_evidence.yaml", err)
	}
	var file struct{ Evidence []map[string]any }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	out := make(map[evidenceKey]map[string]any)
	for _, e := range file.Evidence {
		bench, ok := benchNames()[fmt.Sprint(e["bench"])]
		if !ok {
			t.Fatalf("benchmark %v has no name here", e["bench"])
		}
		out[evidenceKey{bench, evidenceModel(fmt.Sprint(e["model"]))}] = e
	}
	if len(out) < 100 {
		t.Fatalf("only %d rows of evidence", len(out))
	}
	return out
}

// evidenceModel takes what is not part of the name off an evidence row's
// model: remarks of the leaderboards it was read from.
func evidenceModel(name string) string {
	name, _, _ = strings.Cut(strings.TrimSpace(name), " ,")
	name, _, _ = strings.Cut(name, " (")
	return strings.TrimSpace(name)
}

// apiName is a leaderboard's name as one would write it to a provider.
func apiName(model string) string {
	// a reseller without a slash; a doubt of the leaderboard's authors
	model = strings.TrimSuffix(strings.TrimPrefix(model, "parasail-"), "?")
	return strings.ReplaceAll(model, " ", "-")
}

// TestEvidenceResolves: every model somebody has published a figure for
// resolves to a row, and that row's source names the figure.
func TestEvidenceResolves(t *testing.T) {
	table := builtin(t)
	families := make(map[string]bool)
	for key := range readEvidence(t) {
		s := table.Lookup(apiName(key.model))
		if !s.Known {
			t.Errorf("%s [%s]: no row", key.bench, key.model)
			continue
		}
		families[s.Pattern] = true
		if !strings.Contains(s.Source, key.bench+" ["+key.model+"]") {
			t.Errorf("%s [%s]: the row %q does not name it: %s", key.bench, key.model, s.Pattern, s.Source)
		}
	}
	t.Logf("%d rows carry evidence, %d in all", len(families), len(table.Rows()))
}

var cited = regexp.MustCompile(`^(\S+) \[([^\]]+)\](?: (.+))?$`)

// TestSourcesExist: what a row's source names stands in the evidence, with
// these figures, and the row's number is not above all of them.
func TestSourcesExist(t *testing.T) {
	evidence := readEvidence(t)
	for _, r := range builtin(t).Rows() {
		best, remarks := 0, ""
		for part := range strings.SplitSeq(r.Source, "; ") {
			m := cited.FindStringSubmatch(part)
			if m == nil {
				remarks += part
				continue
			}
			e := evidence[evidenceKey{m[1], m[2]}]
			if e == nil {
				t.Errorf("row %q: there is no evidence %s [%s]", r.Pattern, m[1], m[2])
				continue
			}
			for figure := range strings.SplitSeq(m[3], ", ") {
				best = max(best, checkFigure(t, r.Pattern, e, figure))
			}
		}
		switch {
		case best == 0 && !strings.HasPrefix(remarks, "no evidence") && remarks != "the owner's example" &&
			!strings.Contains(remarks, "a quarter of its window"):
			t.Errorf("row %q: no figure in %q", r.Pattern, r.Source)
		case best > 0 && r.EAS > best && r.EAS > 1000:
			t.Errorf("row %q: %d is more than any figure of %q", r.Pattern, r.EAS, r.Source)
		case (r.Confidence == ConfidenceNone) != strings.HasPrefix(remarks, "no evidence"):
			t.Errorf("row %q: confidence %s with %q", r.Pattern, r.Confidence, r.Source)
		}
	}
}

// checkFigure compares one figure, as "eff85 8000" or "effective 8K", with the
// evidence and gives its length in tokens, 0 where it is none.
func checkFigure(t *testing.T, pattern string, e map[string]any, figure string) int {
	t.Helper()
	name, value, _ := strings.Cut(figure, " ")
	switch name {
	case "":
		return 0
	case "base":
		base, _, _ := strings.Cut(fmt.Sprint(cmp.Or(e["base"], e["base_thr"])), " ")
		if base != value {
			t.Errorf("row %q: base is %s in the evidence, %s here", pattern, base, value)
		}
		return 0
	}
	if got := fmt.Sprint(e[name]); got != value {
		t.Errorf("row %q: %s is %s in the evidence, %s here", pattern, name, got, value)
	}
	if strings.Contains(value, "/") || name == "breaks" {
		return 0
	}
	digits := strings.Trim(strings.ToUpper(value), "<>")
	n, err := strconv.Atoi(strings.TrimSuffix(digits, "K"))
	if err != nil {
		t.Errorf("row %q: %q is no length", pattern, figure)
	}
	if strings.HasSuffix(digits, "K") {
		n *= 1024
	}
	return n
}
