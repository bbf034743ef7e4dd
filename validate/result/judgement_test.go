// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	result := func(v Verdict, nodes ...string) Result {
		return Result{Check: WriteBandwidth, Nodes: nodes, Part: "rail 0", Verdict: v, Why: "below the limit"}
	}
	rep := Report{Members: []string{"a", "b", "c", "d", "e"}, Suspects: []string{"b"}, Results: []Result{
		result(Pass, "a", "c"), result(Fail, "a", "b"), result(Fail, "c", "d"), result(Pass, "d", "a"), result(Fail, "b", "e"),
	}}
	j := judgeReport(rep)
	for node, want := range map[string]string{
		"a": "", // its one bad result is b's fault
		"b": "it is suspected in validate.pair",
		"c": "rdma.write_bw of [c d] rail 0 is fail: below the limit",
		"d": "rdma.write_bw of [c d] rail 0 is fail",
		"e": "all of its partners are suspected",
		"f": "it was not among the nodes that were tested",
	} {
		err := j.Passed(node, PairReport)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", node, err, want)
		}
	}
	if err := judgeReport(Report{Members: []string{"a"}}).Passed("a", PairReport); err != nil {
		t.Errorf("the last one of its group: %v", err)
	}
}

// TestSome: a sentence about thousands of nodes stays a sentence.
func TestSome(t *testing.T) {
	t.Parallel()
	var nodes []string
	for i := range 4096 {
		nodes = append(nodes, fmt.Sprintf("n%d", i))
	}
	if got, want := NameSome(nodes), "n0, n1, n2, n3, n4, n5, n6, n7 and 4088 more"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := describeNodes(Result{Nodes: nodes[:2], Part: "rail 1"}); got != "[n0 n1] rail 1" {
		t.Errorf("%q", got)
	}
}
