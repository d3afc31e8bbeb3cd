package redact

import "testing"

// A value without a text is searched by nobody, so that nothing can have been learned since.
func TestJSONWithoutText(t *testing.T) {
	out, changed, err := NewLearning(nil, nil, new(Learned)).JSON([]byte(`[1,null,true]`), nil)
	if string(out) != `[1,null,true]` || changed || err != nil {
		t.Errorf("%s, %v, %v: want it unchanged", out, changed, err)
	}
}
