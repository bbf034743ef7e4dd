// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"slices"
	"testing"
)

func TestParseNode(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]node{
		"NodeName=n1 NodeAddr=10.0.0.1 State=IDLE+DRAIN ThreadsPerCore=1 Reason=ironrail: is State=IDLE [root@2026-11-22T03:00:00]": {known: true, addr: "10.0.0.1", states: []string{"IDLE", "DRAIN"}, reason: "ironrail: is State=IDLE [root@2026-11-22T03:00:00]"},
		"NodeName=n1 State=DOWN*+DRAIN+NOT_RESPONDING Reason=x":                                                                     {known: true, states: []string{"DOWN", "DRAIN", "NOT_RESPONDING"}, reason: "x"},
		"NodeName=n1 State=MIXED~": {known: true, states: []string{"MIXED"}},
		"":                         {known: true},
	} {
		got := parseNode(line)
		if got.known != want.known || got.addr != want.addr || got.reason != want.reason || !slices.Equal(got.states, want.states) {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// FuzzAnswers: whatever the programs print, no job is lost without an error.
func FuzzAnswers(f *testing.F) {
	f.Add("7|kim|RUNNING|1:00|n[1-2]|a|b\n\n8|x|PENDING|0||y\n")
	f.Add("NodeName=n1 State=IDLE+DRAIN Reason=a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		parseNode(text)
		jobs, err := parseJobs(text)
		for _, j := range jobs {
			if j.ID == "" || j.State == "PENDING" {
				t.Errorf("%q: %+v", text, j)
			}
		}
		if err != nil && jobs != nil {
			t.Errorf("%q: jobs beside an error", text)
		}
	})
}
