// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTiming: times are read from files and the command line alike, and nonsense is refused.
func TestTiming(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want Timing
		err  string
	}{
		{"kind=link-down,node=n1,at=accepted,after=10m", Timing{After: 10 * time.Minute}, ""},
		{"kind=link-down,node=n1,for=5s,every=1m,probability=0.4", Timing{For: 5 * time.Second, Every: time.Minute, Probability: 0.4}, ""},
		{"kind=gpu-xid,node=n1,at=validate.accept,after=1s", Timing{After: time.Second}, ""},
		{"kind=gpu-xid,node=n1,for=5s", Timing{}, "does not come and go"},
		{"kind=missing-dimm,node=n1,after=5s", Timing{}, "takes no after"},
		{"kind=controller-kill,at=accepted", Timing{}, "cannot begin on a node that is in service"},
		{"kind=dhcp-loss,node=n1,at=accepted", Timing{}, "cannot begin on a node that is in service"},
		{"kind=link-down,node=n1,every=1m", Timing{}, "say how long it is there"},
		{"kind=link-down,node=n1,probability=0.5", Timing{}, "say how long it is there"},
		{"kind=link-down,node=n1,for=5s,probability=0.5", Timing{}, "say every"},
		{"kind=link-down,node=n1,for=2m,every=1m", Timing{}, "would never go"},
		{"kind=link-down,node=n1,for=1ms", Timing{}, "at least 1s"},
		{"kind=link-down,node=n1,for=1s,every=2s", Timing{}, "at least 10s"},
		{"kind=link-down,node=n1,after=25h", Timing{}, "between 0s and 24h"},
		{"kind=link-down,node=n1,after=-5s", Timing{}, "a duration above zero"},
		{"kind=link-down,node=n1,for=0s", Timing{}, "a duration above zero"},
		{"kind=link-down,node=n1,for=five", Timing{}, "a duration above zero"},
		{"kind=link-down,node=n1,for=5s,every=1m,probability=0", Timing{}, "above 0 and at most 1"},
		{"kind=link-down,node=n1,for=5s,every=1m,probability=NaN", Timing{}, "above 0 and at most 1"},
		{"kind=link-down,node=n1,for=5s,every=1m,probability=1.5", Timing{}, "above 0 and at most 1"},
	} {
		f, err := Parse(c.text)
		if c.err == "" && (err != nil || f.Timing != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %+v, %v; want %+v, %q", c.text, f.Timing, err, c.want, c.err)
		}
		body := []byte("fault \"" + string(f.Kind) + "\" {\n")
		for word := range strings.SplitSeq(c.text, ",") {
			if name, value, _ := strings.Cut(word, "="); name != "kind" {
				if name != "probability" {
					value = "\"" + value + "\""
				}
				body = append(body, name+" = "+value+"\n"...)
			}
		}
		list, diags := parseFile("f.hcl", append(body, "}\n"...))
		if c.err == "" && (diags.HasErrors() || len(list) != 1 || list[0].Timing != c.want) || c.err != "" && !diags.HasErrors() {
			t.Errorf("%s in a file: %+v, %v", c.text, list, diags)
		}
	}
}

// TestSpells: the times of a fault follow from the seed.
func TestSpells(t *testing.T) {
	t.Parallel()
	f := Fault{Kind: LinkDown, Node: "n1", Timing: Timing{After: time.Minute, For: 5 * time.Second, Every: 30 * time.Second}}
	if all := f.Spells(1); len(all) != mostTimes || all[0] != (Spell{time.Minute, 65 * time.Second}) || all[9].To != f.Horizon() {
		t.Errorf("%v, horizon %s", all, f.Horizon())
	}
	f.Probability = 0.5
	few := f.Spells(1)
	if !slices.Equal(few, f.Spells(1)) || len(few) == 0 || len(few) == mostTimes || slices.Equal(few, f.Spells(2)) && slices.Equal(few, f.Spells(3)) {
		t.Errorf("seeds 1 to 3: %v, %v, %v", few, f.Spells(2), f.Spells(3))
	}
	if once := (Fault{Kind: LinkDown, Timing: Timing{For: time.Second}}).Spells(1); !slices.Equal(once, []Spell{{0, time.Second}}) {
		t.Errorf("%v", once)
	}
	if stays := (Fault{Kind: LinkDown}).Spells(1); !slices.Equal(stays, []Spell{{}}) {
		t.Errorf("%v", stays)
	}
}
