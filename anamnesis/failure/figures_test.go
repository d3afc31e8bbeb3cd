package failure

import (
	"slices"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestRecorded measures the labelled outputs: the telling line is right in
// 95 %, two runs of one trouble have one signature in 90 %, two troubles share
// one in under 2 %.
func TestRecorded(t *testing.T) {
	all := recordings(t)
	for _, h := range []string{"choose", "report"} {
		if *half == "" || *half == h {
			t.Run(h, func(t *testing.T) { measure(t, h, all) })
		}
	}
}

func measure(t *testing.T, h string, all []recorded) {
	type read struct {
		recorded
		sig string
	}
	var reads []read
	right, n, none, noneRight, lessons := 0, 0, 0, 0, 0
	for _, r := range all {
		if r.Half != h {
			continue
		}
		if ok, why := Lesson(r.Output); r.None != "" && r.None != "nothing failed" {
			none++
			if !ok || r.None == "nothing printed" {
				noneRight++
			} else if *verbose {
				t.Logf("LESSON %s call %d: %q, want %q", r.Run, r.Call, why, r.None)
			}
		} else if !ok {
			lessons++
			t.Logf("NO LESSON %s call %d: %q", r.Run, r.Call, why)
		}
		if len(r.Lines) == 0 {
			continue
		}
		f, _ := Read(r.Output)
		n++
		if slices.Contains(r.Lines, f.Index) {
			right++
		} else if *verbose {
			t.Logf("LINE %s call %d: %d %q, want %v", r.Run, r.Call, f.Index, f.Line, r.Lines)
		}
		if r.Trouble != "" {
			reads = append(reads, read{r, f.Signature})
		}
	}
	same, one, differ, share := 0, 0, 0, 0
	for i, a := range reads {
		for _, b := range reads[i+1:] {
			switch {
			case a.Trouble == b.Trouble && a.sig == b.sig:
				same, one = same+1, one+1
			case a.Trouble == b.Trouble:
				same++
				if *verbose {
					t.Logf("SAME %s: %q and %q", a.Trouble, a.sig, b.sig)
				}
			case a.sig == b.sig:
				differ, share = differ+1, share+1
				if *verbose {
					t.Logf("SHARE %s, %s: %q", a.Trouble, b.Trouble, a.sig)
				}
			default:
				differ++
			}
		}
	}
	t.Logf("telling line right in %d of %d (%.1f %%); one trouble, one signature in %d of %d pairs (%.1f %%); two troubles share one in %d of %d (%.2f %%); nothing to learn from: %d of %d, and %d wrongly",
		right, n, percent(right, n), one, same, percent(one, same), share, differ, percent(share,
			differ), noneRight, none, lessons)
	if percent(right, n) < 95 || percent(one, same) < 90 || percent(share, differ) >= 2 || lessons > 0 ||
		noneRight < none {
		t.Error("below what is promised")
	}
}

func percent(a, b int) float64 { return 100 * float64(a) / float64(max(b, 1)) }
